// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/leader_endpoint.h"

#include <gmock/gmock.h>

#include <atomic>
#include <optional>
#include <thread>

#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class LeaderEndpointTest : public ::testing::Test {
 protected:
  void Start(const std::string& address) {
    endpoint_.emplace(
        client_, [this] { return leads_.load(); },
        LeaderEndpointOptions{{"grus-system", "grus-extender"}, address, 8443}, clock_, log_);
    thread_ = std::jthread([this](const std::stop_token& stop) { endpoint_->Run(stop); });
    ASSERT_TRUE(clock_.AwaitWaiters(1));
  }
  void ExpectWrites(int count) {
    for (int i = 0; i < count; ++i) {
      transport_.Expect("PATCH", "/apis/discovery.k8s.io/v1/namespaces/grus-system/endpointslices/grus-extender-ipv",
                        kube::HttpResponse{.status = 200, .headers = {}, .body = R"({"metadata":{"name":"x"}})"});
    }
  }
  void Advance(kube::Duration by) {
    clock_.Advance(by);
    ASSERT_TRUE(clock_.AwaitWaiters(1));
  }

  kube::testing::FakeClock clock_;
  kube::testing::FakeTransport transport_{clock_};
  kube::Client client_{transport_, nullptr, clock_};
  kube::Log log_{kube::LogLevel::kOff};
  std::atomic<bool> leads_{false};
  std::optional<LeaderEndpoint> endpoint_;
  std::jthread thread_;
};

TEST_F(LeaderEndpointTest, TheServiceLeadsToWhoLeads) {
  Start("10.1.2.3");
  EXPECT_THAT(transport_.requests(), SizeIs(0)) << "it does not lead";
  ExpectWrites(2);
  leads_ = true;
  Advance(1s);
  EXPECT_THAT(transport_.requests(), SizeIs(0)) << "gangs come first";
  Advance(3s);
  ASSERT_THAT(transport_.requests(), SizeIs(1));
  EXPECT_THAT(transport_.requests()[0].target, HasSubstr("/grus-extender-ipv4?"));
  EXPECT_THAT(transport_.requests()[0].body,
              AllOf(HasSubstr(R"("kubernetes.io/service-name":"grus-extender")"), HasSubstr(R"("addressType":"IPv4")"),
                    HasSubstr(R"("addresses":["10.1.2.3"])"), HasSubstr(R"("port":8443)")));
  Advance(5s);
  EXPECT_THAT(transport_.requests(), SizeIs(1)) << "nothing has changed";
  Advance(10s);
  EXPECT_THAT(transport_.requests(), SizeIs(2)) << "somebody may have changed it";
}

TEST_F(LeaderEndpointTest, AFailedWriteIsRepeated) {
  transport_.Expect("PATCH", "/", kube::HttpResponse{.status = 403, .headers = {}, .body = "{}"});
  leads_ = true;
  Start("fd00::1");
  Advance(4s);
  ASSERT_THAT(transport_.requests(), SizeIs(1));
  ExpectWrites(1);
  Advance(6s);
  ASSERT_THAT(transport_.requests(), SizeIs(2));
  EXPECT_THAT(transport_.requests()[1].target, HasSubstr("/grus-extender-ipv6?"));
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Without certificates; tests/charts/extender_test.sh has a scheduler, and strangers, over mutual TLS.
#include "controllers/manager/extender_server.h"

#include <gmock/gmock.h>

#include "controllers/version/version.h"
#include "tests/clientlib/runtime/raw_connection.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::testing::Exchange;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ExtenderServerTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    extender_.refused_pods().FeedQueue(queue_);
    StartCaches();
    options_.extender_address = "127.0.0.1:0";
    auto served = ServeExtender(options_, extender_, {[this] { return is_ready_; }, [] { return true; }}, log_);
    ASSERT_TRUE(served) << served.error().message();
    extender_server_ = *std::move(served);
  }
  std::string Get(const std::string& path) {
    return Exchange(extender_server_->port(), "GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }
  std::string Post(const std::string& path, const std::string& body) {
    return Exchange(extender_server_->port(), "POST " + path +
                                                  " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " +
                                                  std::to_string(body.size()) + "\r\n\r\n" + body);
  }

  Options options_;
  bool is_ready_ = true;
  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  ClusterAccount account_{nodes_, pods_, clock_};
  kube::Registry metrics_;
  Extender extender_{client_, pods_, nodes_, account_, clock_, log_, metrics_};
  std::unique_ptr<kube::HttpServer> extender_server_;
};

TEST_F(ExtenderServerTest, ServesThePathsOfGpushare) {
  EXPECT_THAT(Get("/version"), EndsWith(std::string("\r\n\r\n") + kVersion));
  EXPECT_THAT(Get("/gpushare-scheduler/version"), EndsWith(std::string("\r\n\r\n") + kVersion));
  EXPECT_THAT(Post("/gpushare-scheduler/filter", "{}"), HasSubstr("Pod: expected the pod to schedule"));
}

TEST_F(ExtenderServerTest, RefusesWhatTheContractDoesNotHave) {
  EXPECT_THAT(Post("/gpushare-scheduler/inspect", "{}"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(Get("/gpushare-scheduler/filter"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(Get("/gpushare-scheduler/inspected"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Get("/gpushare-scheduler/"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(ExtenderServerTest, WithoutClientsCertificatesNothingIsBoundOrInspected) {
  for (const char* below : {"", "/", "/n1"}) {
    EXPECT_THAT(Get("/gpushare-scheduler/inspect" + std::string(below)), StartsWith("HTTP/1.1 403 ")) << below;
  }
  EXPECT_THAT(Post("/scheduler/bind", "{}"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(Post("/gpushare-scheduler/bind", "{}"), StartsWith("HTTP/1.1 403 "));
}

TEST_F(ExtenderServerTest, WhileItsCachesMayKnowNothingItSaysNothing) {
  is_ready_ = false;
  EXPECT_THAT(Post("/gpushare-scheduler/filter", "{}"), StartsWith("HTTP/1.1 503 "));
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/fake_transport.h"

#include <gtest/gtest.h>

#include <future>

#include "clientlib/testing/fake_clock.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

HttpRequest Get(std::string target) { return {.target = std::move(target)}; }

class FakeTransportTest : public ::testing::Test {
 protected:
  std::string Body(const std::string& target) {
    Result<HttpResponse> response = transport_.Send(Get(target), {});
    return response ? response->body : response.error().message();
  }
  std::string NextBytes(ByteStream& stream) {
    Result<std::string> bytes = stream.Read(clock_.Now() + 1s, {});
    return bytes ? *bytes : bytes.error().message();
  }

  FakeClock clock_;
  FakeTransport transport_{clock_};
};

TEST_F(FakeTransportTest, GivesExpectedAnswersOnceAndInOrderBeforeHandlers) {
  transport_.Handle("GET", "/api", [](auto&, auto&) { return JsonAnswer(200, "handler"); });
  transport_.Expect("GET", "/api/v1/pods", JsonAnswer(200, "first"));
  transport_.Expect("GET", "/api/v1/pods", JsonAnswer(200, "second"));

  EXPECT_EQ(Body("/api/v1/nodes"), "handler");
  EXPECT_EQ(Body("/api/v1/pods?limit=1"), "first");
  EXPECT_FALSE(transport_.is_exhausted());
  EXPECT_EQ(Body("/api/v1/pods"), "second");
  EXPECT_TRUE(transport_.is_exhausted());
  EXPECT_EQ(Body("/api/v1/pods"), "handler");
  EXPECT_EQ(transport_.requests().size(), 4u);
}

TEST_F(FakeTransportTest, AReadEndsAtItsDeadlineAndTheStreamGoesOn) {
  FakeStream stream = transport_.ExpectStream("/");
  Result<StreamResponse> opened = transport_.Open(Get("/"), {});
  ASSERT_TRUE(opened && opened->stream);
  auto read = std::async(std::launch::async, [&] { return NextBytes(*opened->stream); });
  ASSERT_TRUE(stream.AwaitDrained());

  clock_.Advance(1s);

  EXPECT_EQ(read.get(), "no bytes in time");
  stream.Push("late");
  EXPECT_EQ(NextBytes(*opened->stream), "late");
}

TEST_F(FakeTransportTest, AReadEndsWithAStop) {
  FakeStream stream = transport_.ExpectStream("/");
  Result<StreamResponse> opened = transport_.Open(Get("/"), {});
  ASSERT_TRUE(opened && opened->stream);
  std::stop_source stop;
  auto read = std::async(std::launch::async, [&] { return opened->stream->Read(TimePoint::max(), stop.get_token()); });
  ASSERT_TRUE(stream.AwaitDrained());

  stop.request_stop();

  Result<std::string> bytes = read.get();
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code(), ErrorCode::kCancelled);
}

TEST_F(FakeTransportTest, AHangingRequestEndsAtItsTimeout) {
  transport_.ExpectHang("GET", "/");
  HttpRequest request = Get("/");
  request.timeout = 5s;
  auto sent = std::async(std::launch::async, [&] { return transport_.Send(request, {}); });
  ASSERT_TRUE(clock_.AwaitWaiters(1));

  clock_.Advance(5s);

  Result<HttpResponse> response = sent.get();
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), ErrorCode::kTimeout);
}

}  // namespace
}  // namespace kube::testing

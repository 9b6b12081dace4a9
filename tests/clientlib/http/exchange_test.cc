// SPDX-License-Identifier: Apache-2.0
// Waiting for answers and streams.
#include "clientlib/http/exchange.h"

#include <future>
#include <string>

#include "tests/clientlib/http/transport_fixture.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::Event;
using testing::ReadAll;
using testing::TestConnection;
using testing::TestRequest;

class ExchangeTest : public testing::TransportFixture {};

TEST_F(ExchangeTest, AnyStatusIsASuccess) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(503, "busy", {{"Retry-After", "7"}}); });
  auto transport = Connect(OptionsFor(*server));

  Result<HttpResponse> got = transport->Send({.target = "/"}, {});

  ASSERT_TRUE(got);
  EXPECT_EQ(got->status, 503);
  EXPECT_EQ(got->Header("retry-after"), "7");
}

TEST_F(ExchangeTest, StreamHandsOverBytesAsTheyComeAndEndsEmpty) {
  Event go_on;
  auto server = Serve([&](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    connection.Chunk("one\n");
    EXPECT_TRUE(go_on.Wait());
    connection.Chunk("two\n");
    connection.EndChunks();
  });
  auto transport = Connect(OptionsFor(*server));

  Result<StreamResponse> opened = transport->Open({.target = "/", .pool = HttpPool::kWatch}, {});

  ASSERT_TRUE(opened) << opened.error().message();
  EXPECT_EQ(opened->head.status, 200);
  ASSERT_NE(opened->stream, nullptr);
  EXPECT_EQ(*opened->stream->Read(Soon(), {}), "one\n");
  go_on.Set();
  EXPECT_EQ(ReadAll(*opened->stream, Soon()), "two\n");
}

TEST_F(ExchangeTest, RefusedStreamBringsItsBodyInTheHead) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(410, "{\"reason\":\"Expired\"}"); });
  auto transport = Connect(OptionsFor(*server));

  Result<StreamResponse> opened = transport->Open({.target = "/"}, {});

  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->head.status, 410);
  EXPECT_EQ(opened->head.body, "{\"reason\":\"Expired\"}");
  EXPECT_EQ(opened->stream, nullptr);
}

TEST_F(ExchangeTest, BodyOfARefusedStreamIsCut) {
  const std::string page(200'000, 'x');
  auto server = Serve([&](const TestRequest&, TestConnection& c) { c.Respond(502, page); });
  auto transport = Connect(OptionsFor(*server));

  Result<StreamResponse> opened = transport->Open({.target = "/"}, {});

  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->head.body.size(), 65'536U);
}

TEST_F(ExchangeTest, StopWakesAWaitingSend) {
  Event arrived;
  auto server = Serve([&](const TestRequest&, TestConnection& connection) {
    arrived.Set();
    connection.AwaitClosing();
  });
  auto transport = Connect(OptionsFor(*server));
  std::stop_source stop;
  auto sending = std::async(std::launch::async, [&] { return transport->Send({.target = "/"}, stop.get_token()); });
  ASSERT_TRUE(arrived.Wait());

  stop.request_stop();

  Result<HttpResponse> got = sending.get();
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), ErrorCode::kCancelled);
}

TEST_F(ExchangeTest, StopWakesAWaitingOpenAndRead) {
  for (const std::string target : {"/silent", "/stream"}) {
    Event arrived;
    auto server = Serve([&](const TestRequest& request, TestConnection& connection) {
      if (request.target == "/stream") {
        connection.StartChunks();
        connection.Chunk("one");
      } else {
        arrived.Set();
      }
      connection.AwaitClosing();
    });
    auto transport = Connect(OptionsFor(*server));
    std::stop_source stop;
    auto waiting = std::async(std::launch::async, [&]() -> ErrorCode {
      Result<StreamResponse> opened = transport->Open({.target = target}, stop.get_token());
      if (!opened) return opened.error().code();
      if (!opened->stream->Read(Soon(), {})) return ErrorCode::kInternal;
      arrived.Set();
      Result<std::string> bytes = opened->stream->Read(TimePoint::max(), stop.get_token());
      return bytes ? ErrorCode::kInternal : bytes.error().code();
    });
    ASSERT_TRUE(arrived.Wait());
    stop.request_stop();
    EXPECT_EQ(waiting.get(), ErrorCode::kCancelled) << target;
  }
}

TEST_F(ExchangeTest, DeadlinePassesAsTimeout) {
  auto server = Serve([&](const TestRequest& request, TestConnection& connection) {
    if (request.target == "/stream") connection.StartChunks();
    connection.AwaitClosing();
  });
  auto transport = Connect(OptionsFor(*server));

  Result<HttpResponse> sent = transport->Send({.target = "/", .timeout = 20ms}, {});
  Result<StreamResponse> refused = transport->Open({.target = "/", .timeout = 20ms}, {});
  Result<StreamResponse> opened = transport->Open({.target = "/stream"}, {});
  ASSERT_TRUE(opened);
  Result<std::string> read = opened->stream->Read(clock_.Now() + 20ms, {});

  EXPECT_EQ(sent.error().code(), ErrorCode::kTimeout);
  EXPECT_EQ(refused.error().code(), ErrorCode::kTimeout);
  EXPECT_EQ(read.error().code(), ErrorCode::kTimeout);
}

TEST_F(ExchangeTest, StreamStaysUsableAfterATimedOutRead) {
  Event go_on;
  auto server = Serve([&](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    EXPECT_TRUE(go_on.Wait());
    connection.Chunk("late");
    connection.EndChunks();
  });
  auto transport = Connect(OptionsFor(*server));
  Result<StreamResponse> opened = transport->Open({.target = "/"}, {});
  ASSERT_TRUE(opened);

  ASSERT_FALSE(opened->stream->Read(clock_.Now(), {}));
  go_on.Set();

  EXPECT_EQ(ReadAll(*opened->stream, Soon()), "late");
}

TEST_F(ExchangeTest, BrokenStreamGivesItsBytesThenUnavailable) {
  auto server = Serve([&](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    connection.Chunk("whole");
    connection.Raw("20\r\nhalf");
    connection.Close();
  });
  auto transport = Connect(OptionsFor(*server));
  Result<StreamResponse> opened = transport->Open({.target = "/"}, {});
  ASSERT_TRUE(opened);

  EXPECT_THAT(ReadAll(*opened->stream, Soon()), ::testing::StartsWith("wholehalf<connection to https://127.0.0.1"));
  EXPECT_EQ(opened->stream->Read(Soon(), {}).error().code(), ErrorCode::kUnavailable);
}

TEST_F(ExchangeTest, StopRequestedBeforeSendsNothingForLong) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.AwaitClosing(); });
  auto transport = Connect(OptionsFor(*server));
  std::stop_source stop;
  stop.request_stop();

  EXPECT_EQ(transport->Send({.target = "/"}, stop.get_token()).error().code(), ErrorCode::kCancelled);
}

TEST_F(ExchangeTest, BodyOverTheLimitIsTooLarge) {
  auto server = Serve([](const TestRequest&, TestConnection& c) { c.Respond(200, std::string(1001, 'x')); });
  TransportOptions options = OptionsFor(*server);
  options.body_limit = 1000;
  auto over = Connect(options);
  options.body_limit = 1001;
  auto at = Connect(options);

  EXPECT_EQ(over->Send({.target = "/"}, {}).error().code(), ErrorCode::kTooLarge);
  EXPECT_EQ(at->Send({.target = "/"}, {})->body.size(), 1001U);
}

TEST_F(ExchangeTest, StreamIsGivenUpWhenItsReaderFallsBehind) {
  Event closed;
  auto server = Serve([&](const TestRequest&, TestConnection& connection) {
    connection.StartChunks();
    connection.Chunk(std::string(300'000, 'x'));
    connection.AwaitClosing();
    closed.Set();
  });
  TransportOptions options = OptionsFor(*server);
  options.stream_buffer_limit = 200'000;
  auto transport = Connect(options);
  Result<StreamResponse> opened = transport->Open({.target = "/"}, {});
  ASSERT_TRUE(opened);

  ASSERT_TRUE(closed.Wait());

  EXPECT_EQ(opened->stream->Read(Soon(), {}).error().code(), ErrorCode::kTooLarge);
}

TEST_F(ExchangeTest, ReadsComeInChunksOfAtMost64KiB) {
  const std::string body(1'000'000, 'x');
  auto server = Serve([&](const TestRequest&, TestConnection& c) { c.Respond(200, body); });
  auto transport = Connect(OptionsFor(*server));
  Result<StreamResponse> opened = transport->Open({.target = "/"}, {});
  ASSERT_TRUE(opened);

  std::size_t total = 0;
  while (true) {
    Result<std::string> bytes = opened->stream->Read(Soon(), {});
    ASSERT_TRUE(bytes);
    if (bytes->empty()) break;
    EXPECT_LE(bytes->size(), 65'536U);
    total += bytes->size();
  }
  EXPECT_EQ(total, body.size());
}

}  // namespace
}  // namespace kube

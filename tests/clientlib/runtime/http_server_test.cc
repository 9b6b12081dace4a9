// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/http_server.h"

#include <gmock/gmock.h>

#include <list>

#include "tests/clientlib/runtime/raw_connection.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using testing::Exchange;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawConnection;
using ::testing::StartsWith;

std::string Request(const std::string& method, const std::string& target) {
  return method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
}

std::unique_ptr<HttpServer> StartServer(HttpServerLimits limits = {}) {
  std::map<std::string, HttpServer::Handler> handlers;
  handlers["/healthz"] = [](const ServedRequest&) { return HttpReply{.body = "ok"}; };
  handlers["/readyz"] = [](const ServedRequest&) { return HttpReply{.status = 503, .body = "not yet"}; };
  handlers["/echo"] = [](const ServedRequest& request) {
    return HttpReply{.content_type = "a/b", .body = request.query};
  };
  handlers["/throws"] = [](const ServedRequest&) -> HttpReply { throw std::runtime_error("a bug"); };
  auto server = HttpServer::Start("127.0.0.1:0", std::move(handlers), limits);
  return server ? *std::move(server) : nullptr;
}

TEST(HttpServer, AnswersAGetWithWhatTheHandlerSays) {
  const auto server = StartServer();
  const std::string answer = Exchange(server->port(), Request("GET", "/healthz"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nok"));
  EXPECT_THAT(Exchange(server->port(), Request("GET", "/readyz")), StartsWith("HTTP/1.1 503 "));
}

TEST(HttpServer, GivesTheQueryToTheHandler) {
  const auto server = StartServer();
  const std::string answer = Exchange(server->port(), Request("GET", "/echo?a=1&b=%20?"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: a/b\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\na=1&b=%20?"));
  EXPECT_THAT(Exchange(server->port(), Request("GET", "/echo?")), EndsWith("\r\n\r\n"));
}

TEST(HttpServer, AHeadHasTheLengthButNotTheBody) {
  const auto server = StartServer();
  const std::string answer = Exchange(server->port(), Request("HEAD", "/healthz"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 2\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(HttpServer, RefusesWhatItDoesNotKnow) {
  struct Case {
    std::string request, want;
  };
  const auto server = StartServer();
  for (const Case& c : {
           Case{Request("GET", "/nothing"), "HTTP/1.1 404 "},
           Case{Request("GET", "/healthz/x"), "HTTP/1.1 404 "},
           Case{Request("POST", "/healthz"), "HTTP/1.1 405 "},
           Case{"POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 405 "},
           Case{Request("DELETE", "/healthz"), "HTTP/1.1 405 "},
           Case{"nonsense\r\n\r\n", "HTTP/1.1 400 "},
           Case{"GET /healthz HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "},  // No Host.
           Case{"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 400 "},
           Case{"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400 "},
           Case{"GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(9000, 'x') + "\r\n\r\n", "HTTP/1.1 431 "},
           Case{"GET /" + std::string(9000, 'x'), "HTTP/1.1 431 "},
           Case{Request("GET", "/throws"), "HTTP/1.1 500 "},
       }) {
    // An answer and then a close: a server that waits for more would let the read time out.
    RawConnection connection(server->port());
    connection.Send(c.request);
    const std::string answer = connection.Read();
    EXPECT_THAT(answer, StartsWith(c.want)) << c.request.substr(0, 60);
    EXPECT_THAT(answer, Not(HasSubstr("<no answer in time>"))) << c.request.substr(0, 60);
  }
  EXPECT_THAT(Exchange(server->port(), Request("PUT", "/healthz")), HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST(HttpServer, KeepsAConnectionForMoreRequests) {
  const auto server = StartServer();
  RawConnection connection(server->port());
  for (int i = 0; i < 3; ++i) {
    connection.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(connection.Read("\r\n\r\nok"), EndsWith("\r\n\r\nok"));
  }
  // Two at once, and the last one ends it.
  connection.Send("GET /echo?1 HTTP/1.1\r\nHost: x\r\n\r\n" + Request("GET", "/echo?2"));
  EXPECT_THAT(connection.Read(), EndsWith("\r\n\r\n2"));
}

TEST(HttpServer, ClosesAConnectionThatIsTooSlow) {
  const auto server = StartServer({.time = 50ms});
  RawConnection half(server->port()), silent(server->port());
  half.Send("GET /healthz HT");
  EXPECT_EQ(half.Read(), "");
  EXPECT_EQ(silent.Read(), "");
}

TEST(HttpServer, SilenceBetweenTwoRequestsMayHaveALimitOfItsOwn) {
  const auto server = StartServer({.time = 50ms, .idle_time = 1min});
  RawConnection silent(server->port()), half(server->port());
  for (RawConnection* connection : {&silent, &half}) {
    connection->Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(connection->Read("ok"), EndsWith("ok"));
  }
  half.Send("GET /healthz HT");
  EXPECT_EQ(half.Read(), "");

  silent.Send(Request("GET", "/healthz"));
  EXPECT_THAT(silent.Read(), EndsWith("\r\n\r\nok"));
}

// Each byte must not buy it more time.
TEST(HttpServer, ClosesAConnectionThatSendsByteAfterByte) {
  const auto server = StartServer({.time = 50ms});
  RawConnection slow(server->port());
  bool is_closed = false;
  for (int bytes = 0; bytes < 4000 && !is_closed; ++bytes) {
    slow.Send("G");
    is_closed = slow.AwaitNews(5ms);
  }
  EXPECT_TRUE(is_closed);
  EXPECT_EQ(slow.Read(), "");
}

TEST(HttpServer, OneConnectionTooManyClosesTheOneThatWaitedLongest) {
  const auto server = StartServer({.connections = 2, .time = 1min});
  RawConnection first(server->port()), second(server->port());
  for (RawConnection* connection : {&first, &second, &first}) {
    connection->Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(connection->Read("ok"), EndsWith("ok"));
  }

  EXPECT_THAT(Exchange(server->port(), Request("GET", "/healthz")), EndsWith("ok"));

  EXPECT_EQ(second.Read(), "");
  first.Send(Request("GET", "/healthz"));
  EXPECT_THAT(first.Read(), EndsWith("\r\n\r\nok"));
}

TEST(HttpServer, AnswersProbesBesideHundredsOfIdleAndSlowConnections) {
  const auto server = StartServer({.time = 1min});
  std::list<RawConnection> idle, slow;
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(idle.emplace_back(server->port()).is_connected());
    if (i % 50 == 0) {
      EXPECT_THAT(Exchange(server->port(), Request("GET", "/healthz")), EndsWith("ok")) << i;
    }
  }
  for (int i = 0; i < 100; ++i) slow.emplace_back(server->port()).Send("GET /hea");
  for (const std::string byte : {"l", "t", "h"}) {
    for (RawConnection& connection : slow) connection.Send(byte);
    EXPECT_THAT(Exchange(server->port(), Request("GET", "/healthz")), EndsWith("ok"));
  }
}

TEST(HttpServer, ItsEndClosesAllConnections) {
  auto server = StartServer();
  RawConnection connection(server->port());
  connection.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(connection.Read("ok"), EndsWith("ok"));
  const int port = server->port();

  server.reset();

  EXPECT_EQ(connection.Read(), "");
  EXPECT_FALSE(RawConnection(port).is_connected());
}

TEST(HttpServer, ListensOnTheAddressesItIsGiven) {
  for (const std::string address : {"127.0.0.1:0", "localhost:0", ":0", "0.0.0.0:0"}) {
    auto server = HttpServer::Start(address, {{"/", [](auto&) { return HttpReply{.body = "here"}; }}});
    ASSERT_TRUE(server) << server.error().message();
    EXPECT_GT((*server)->port(), 0);
    if (address == "localhost:0") continue;  // May be ::1.
    EXPECT_THAT(Exchange((*server)->port(), Request("GET", "/")), EndsWith("\r\n\r\nhere")) << address;
  }
}

TEST(HttpServer, NamesAnAddressItCannotListenOn) {
  for (const std::string address : {"", "8080", "x:", "x:y", "x:65536", "x:-1", "::1:80", "1.2.3.4:123456"}) {
    const auto server = HttpServer::Start(address, {});
    ASSERT_FALSE(server) << address;
    EXPECT_EQ(server.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(server.error().message(), StartsWith("listen on " + address + ": "));
  }
  const auto first = StartServer();
  const std::string taken = "127.0.0.1:" + std::to_string(first->port());
  const auto second = HttpServer::Start(taken, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(second.error().message(), "listen on " + taken + ": Address already in use");
}

}  // namespace
}  // namespace kube

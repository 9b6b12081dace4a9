// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A socket of a client that may behave badly. Reads fail after 20 s.
class Connection {
 public:
  explicit Connection(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    is_connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Connection() { close(socket_); }
  Connection(const Connection&) = delete;

  bool is_connected() const { return is_connected_; }
  void Send(const std::string& bytes) { (void)send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  // Whether the server has answered or closed within `time`.
  bool AwaitNews(std::chrono::milliseconds time) const {
    pollfd event{socket_, POLLIN, 0};
    return poll(&event, 1, static_cast<int>(time.count())) > 0;
  }

  // Until `end` has come; without `end`, until the server closes.
  std::string Read(const std::string& end = {}) {
    std::string got;
    char bytes[4096];
    while (end.empty() || got.find(end) == std::string::npos) {
      const ssize_t n = recv(socket_, bytes, sizeof(bytes), 0);
      if (n < 0) return got + (errno == ECONNRESET ? "" : "<no answer in time>");
      if (n == 0) break;
      got.append(bytes, static_cast<std::size_t>(n));
    }
    return got;
  }

 private:
  int socket_;
  bool is_connected_ = false;
};

std::string Exchange(int port, const std::string& request) {
  Connection connection(port);
  connection.Send(request);
  return connection.Read();
}

std::string Request(const std::string& method, const std::string& target) {
  return method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
}

std::unique_ptr<HttpServer> StartServer(HttpServerLimits limits = {}) {
  std::map<std::string, HttpServer::Handler> handlers;
  handlers["/healthz"] = [](const std::string&) { return HttpReply{.body = "ok"}; };
  handlers["/readyz"] = [](const std::string&) { return HttpReply{.status = 503, .body = "not yet"}; };
  handlers["/echo"] = [](const std::string& query) { return HttpReply{.content_type = "a/b", .body = query}; };
  handlers["/throws"] = [](const std::string&) -> HttpReply { throw std::runtime_error("a bug"); };
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
    Connection connection(server->port());
    connection.Send(c.request);
    const std::string answer = connection.Read();
    EXPECT_THAT(answer, StartsWith(c.want)) << c.request.substr(0, 60);
    EXPECT_THAT(answer, Not(HasSubstr("<no answer in time>"))) << c.request.substr(0, 60);
  }
  EXPECT_THAT(Exchange(server->port(), Request("PUT", "/healthz")), HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST(HttpServer, KeepsAConnectionForMoreRequests) {
  const auto server = StartServer();
  Connection connection(server->port());
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
  Connection half(server->port()), silent(server->port());
  half.Send("GET /healthz HT");
  EXPECT_EQ(half.Read(), "");
  EXPECT_EQ(silent.Read(), "");
}

// Each byte must not buy it more time.
TEST(HttpServer, ClosesAConnectionThatSendsByteAfterByte) {
  const auto server = StartServer({.time = 50ms});
  Connection slow(server->port());
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
  Connection first(server->port()), second(server->port());
  for (Connection* connection : {&first, &second, &first}) {
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
  std::list<Connection> idle, slow;
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(idle.emplace_back(server->port()).is_connected());
    if (i % 50 == 0) {
      EXPECT_THAT(Exchange(server->port(), Request("GET", "/healthz")), EndsWith("ok")) << i;
    }
  }
  for (int i = 0; i < 100; ++i) slow.emplace_back(server->port()).Send("GET /hea");
  for (const std::string byte : {"l", "t", "h"}) {
    for (Connection& connection : slow) connection.Send(byte);
    EXPECT_THAT(Exchange(server->port(), Request("GET", "/healthz")), EndsWith("ok"));
  }
}

TEST(HttpServer, ItsEndClosesAllConnections) {
  auto server = StartServer();
  Connection connection(server->port());
  connection.Send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(connection.Read("ok"), EndsWith("ok"));
  const int port = server->port();

  server.reset();

  EXPECT_EQ(connection.Read(), "");
  EXPECT_FALSE(Connection(port).is_connected());
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

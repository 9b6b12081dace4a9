// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <atomic>
#include <list>

#include "clientlib/runtime/http_server.h"
#include "tests/clientlib/runtime/raw_connection.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawConnection;
using ::testing::StartsWith;

constexpr std::size_t kLimit = 1UL << 20;

std::string Header(const std::string& target, const std::string& fields) {
  return "POST " + target + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
}

std::string Post(const std::string& target, const std::string& body, const std::string& fields = {}) {
  return Header(target, "Content-Length: " + std::to_string(body.size()) + "\r\n" + fields) + body;
}

std::string Close(std::string fields = {}) { return fields + "Connection: close\r\n"; }

int AnswersIn(const std::string& text) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find("HTTP/1.1 ", at)) != std::string::npos; ++at) ++count;
  return count;
}

class HttpServerPost : public ::testing::Test {
 protected:
  explicit HttpServerPost(HttpServerLimits limits = {.body_bytes = kLimit, .body_time = 1min}) { Restart(limits); }

  void Restart(HttpServerLimits limits) {
    const auto echo = [this](const ServedRequest& request) {
      ++calls_;
      return HttpReply{.body = (request.is_post ? "POST " : "GET ") + request.path + "?" + request.query + " " +
                               request.authorization + ": " + request.body};
    };
    auto started = HttpServer::Start("127.0.0.1:0",
                                     {{"/get", echo},
                                      {"/post", {echo, HttpMethods::kPost}},
                                      {"/both", {echo, HttpMethods::kGetAndPost}},
                                      {"/under/", {echo, HttpMethods::kGetAndPost}}},
                                     limits);
    ASSERT_TRUE(started) << started.error().message();
    server_ = *std::move(started);
  }

  std::string Exchange(const std::string& request) { return testing::Exchange(server_->port(), request); }

  // How a body of all that one may have is answered, once this is `want` or for 20 s.
  std::string AwaitAnswerToTheLargest(const std::string& want) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    std::string answer;
    do {
      answer = Exchange(Post("/post", std::string(kLimit, 'x'), Close()));
    } while (!answer.starts_with(want) && std::chrono::steady_clock::now() < end);
    return answer.substr(0, answer.find('\r'));
  }

  std::atomic<int> calls_ = 0;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerPost, TheHandlerGetsPathQueryAndBody) {
  EXPECT_THAT(Exchange(Post("/post?a=%20", "{}", Close("Authorization: me\r\n"))),
              EndsWith("\r\n\r\nPOST /post?a=%20 me: {}"));
  EXPECT_THAT(Exchange(Post("/under/node-1", "abc", Close())), EndsWith("\r\n\r\nPOST /under/node-1? : abc"));
  EXPECT_THAT(Exchange("GET /under/node-1 HTTP/1.1\r\nHost: x\r\n" + Close() + "\r\n"),
              EndsWith("\r\n\r\nGET /under/node-1? : "));
  EXPECT_THAT(Exchange(Post("/both", "", Close())), EndsWith("\r\n\r\nPOST /both? : "));
  EXPECT_THAT(Exchange(Header("/both", Close())), EndsWith("\r\n\r\nPOST /both? : "));
}

TEST_F(HttpServerPost, AChunkedBodyIsPutTogether) {
  const std::string chunked = Header("/post", Close("Transfer-Encoding: Chunked\r\nAuthorization: me\r\n"));
  EXPECT_THAT(Exchange(chunked + "3\r\nabc\r\n0a;x=\"y\"\r\n0123456789\r\n0\r\n\r\n"),
              EndsWith("\r\n\r\nPOST /post? me: abc0123456789"));
  // What stands behind the body changes nothing that stands before it.
  EXPECT_THAT(Exchange(chunked + "3\r\nabc\r\n0\r\nAuthorization: admin\r\nConnection: keep-alive\r\n\r\n"),
              EndsWith("\r\n\r\nPOST /post? me: abc"));
  RawConnection in_pieces(server_->port());
  for (const std::string piece : {chunked.c_str(), "0\r\n", "\r", "\n"}) in_pieces.Send(piece);
  EXPECT_THAT(in_pieces.Read(), EndsWith("\r\n\r\nPOST /post? me: "));
}

TEST_F(HttpServerPost, ABodyMayBeAsLargeAsTheLimit) {
  std::string body(kLimit, 'x');
  for (std::size_t i = 0; i < body.size(); i += 7) body[i] = static_cast<char>('a' + i % 26);
  EXPECT_THAT(Exchange(Post("/post", body, Close())), EndsWith("\r\n\r\nPOST /post? : " + body));
  std::string chunks;
  for (std::size_t at = 0; at < body.size(); at += 0x1000) chunks += "1000\r\n" + body.substr(at, 0x1000) + "\r\n";
  EXPECT_THAT(Exchange(Header("/post", Close("Transfer-Encoding: chunked\r\n")) + chunks + "0\r\n\r\n"),
              EndsWith("\r\n\r\nPOST /post? : " + body));
}

TEST_F(HttpServerPost, AWrongMethodIsToldTheRightOnes) {
  struct Case {
    std::string method, path, want;
  };
  for (const Case& c :
       {Case{"GET", "/post", "Allow: POST\r\n"}, Case{"HEAD", "/post", "Allow: POST\r\n"},
        Case{"POST", "/get", "Allow: GET, HEAD\r\n"}, Case{"PUT", "/both", "Allow: GET, HEAD, POST\r\n"},
        Case{"OPTIONS", "/under/x", "Allow: GET, HEAD, POST\r\n"}}) {
    const std::string answer = Exchange(c.method + " " + c.path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 ")) << c.method << " " << c.path;
    EXPECT_THAT(answer, HasSubstr(c.want)) << c.method << " " << c.path;
  }
  EXPECT_THAT(Exchange(Post("/nothing", "abc")), StartsWith("HTTP/1.1 404 "));
  EXPECT_EQ(calls_, 0);
}

TEST_F(HttpServerPost, RefusesWhatItWouldNotReadToItsEnd) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n", large = std::to_string(kLimit + 1);
  struct Case {
    std::string request, want;
  };
  for (const Case& c : {
           Case{Header("/post", "Content-Length: " + large + "\r\n"), "413"},
           Case{Header("/post", "Content-Length: 1000000000\r\n"), "413"},
           Case{Header("/post", "Content-Length: 1000000000\r\nExpect: 100-continue\r\n"), "413"},
           Case{Header("/post", "Content-Length: 99999999999999999999999\r\n"), "400"},
           Case{Header("/post", "Content-Length: -1\r\n"), "400"},
           Case{Header("/post", "Content-Length: 3, 3\r\n") + "abc", "400"},
           Case{Header("/post", "Content-Length: 3\r\nContent-Length: 3\r\n") + "abc", "400"},
           Case{Header("/post", "Content-Length: 3\r\nContent-Length: 4\r\n") + "abc", "400"},
           Case{Header("/post", "Content-Length: 3\r\n" + chunked) + "0\r\n\r\n", "400"},
           Case{Header("/post", chunked + "Content-Length: 3\r\n") + "0\r\n\r\n", "400"},
           Case{Header("/post", chunked + chunked) + "0\r\n\r\n", "400"},
           Case{Header("/post", "Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n", "501"},
           Case{Header("/post", "Transfer-Encoding: chunked, gzip\r\n") + "0\r\n\r\n", "501"},
           Case{Header("/post", "Transfer-Encoding: xchunked\r\nContent-Length: 3\r\n") + "abc", "501"},
           Case{"GET /get HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", "501"},
           Case{"POST /post HTTP/1.0\r\nHost: x\r\n" + chunked + "\r\n0\r\n\r\n", "400"},
           Case{Header("/post", "Content-Encoding: gzip\r\nContent-Length: 3\r\n") + "abc", "415"},
           Case{Header("/post", "Expect: 200-ok\r\nContent-Length: 3\r\n") + "abc", "417"},
           Case{Header("/post", chunked) + "x\r\n", "400"},
           Case{Header("/post", chunked) + "-1\r\n", "400"},
           Case{Header("/post", chunked) + "3\r\nabcdefgh\r\n", "400"},
           Case{Header("/post", chunked) + "ffffffffffffffffff\r\n", "400"},
           Case{Header("/post", chunked) + "ffffffffffffffff\r\nabc", "413"},
           Case{Header("/post", chunked) + "3;" + std::string(50'000, 'x'), "400"},
           Case{Header("/post", chunked) + "0\r\nX: " + std::string(50'000, 'x'), "400"},
       }) {
    const std::string answer = Exchange(c.request);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 " + c.want + " ")) << c.request.substr(0, 120);
    EXPECT_EQ(AnswersIn(answer), 1) << answer;
    EXPECT_THAT(answer, Not(HasSubstr("<no answer in time>"))) << c.request.substr(0, 120);
  }
  EXPECT_EQ(calls_, 0);
  EXPECT_EQ(AwaitAnswerToTheLargest("HTTP/1.1 200"), "HTTP/1.1 200 OK");
}

// A client that never ends its body does not fill the memory: it is told so at the limit.
TEST_F(HttpServerPost, AChunkedBodyWithoutAnEndIsRefusedAtTheLimit) {
  RawConnection connection(server_->port());
  connection.Send(Header("/post", "Transfer-Encoding: chunked\r\n"));
  const std::string chunk = "1000\r\n" + std::string(0x1000, 'x') + "\r\n";
  for (std::size_t sent = 0; sent <= kLimit; sent += 0x1000) connection.Send(chunk);
  EXPECT_THAT(connection.Read("\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(calls_, 0);
}

TEST_F(HttpServerPost, WhatARefusedRequestHoldsIsNotTakenForTheNextOne) {
  const std::string hidden = "GET /get HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const std::string& outer :
       {Post("/get", hidden), Post("/nothing", hidden), Post("/post", hidden, "Content-Encoding: gzip\r\n"),
        Header("/post", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n") + "5\r\n" + hidden}) {
    EXPECT_EQ(AnswersIn(Exchange(outer)), 1) << outer;
  }
  EXPECT_EQ(calls_, 0);
}

TEST_F(HttpServerPost, RequestsThatAreSentAtOnceAreAnsweredInOrder) {
  const std::string chunked = Header("/post", "Transfer-Encoding: chunked\r\n") + "1\r\n2\r\n0\r\n\r\n";
  const std::string answer = Exchange(Post("/post", "1") + chunked + "GET /get?3 HTTP/1.1\r\nHost: x\r\n\r\n" +
                                      Post("/post", std::string(100'000, '4')) + Post("/post", "5", Close()));
  EXPECT_EQ(AnswersIn(answer), 5);
  std::size_t at = 0;
  for (const std::string body : {": 1", ": 2", "GET /get?3", ": 4444", ": 5"}) {
    at = answer.find(body, at);
    ASSERT_NE(at, std::string::npos) << body;
  }
}

TEST_F(HttpServerPost, ContinueIsSaidOnlyBeforeABodyThatIsWanted) {
  RawConnection connection(server_->port());
  connection.Send(Header("/post", "Content-Length: 3\r\nExpect: 100-Continue\r\n"));
  EXPECT_EQ(connection.Read("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  connection.Send("abc");
  EXPECT_THAT(connection.Read(": abc"), StartsWith("HTTP/1.1 200 OK\r\n"));
  // A client that did not wait is told nothing; one without a body has nothing to wait for.
  connection.Send(Post("/post", "def", "Expect: 100-continue\r\n") +
                  Post("/post", "", Close("Expect: 100-continue\r\n")));
  EXPECT_THAT(connection.Read(), Not(HasSubstr(" 100 ")));
}

TEST_F(HttpServerPost, TakesNoBodyUnlessItIsToldSo) {
  Restart({});
  EXPECT_THAT(Exchange(Post("/post", "x")), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Exchange(Header("/post", "Transfer-Encoding: chunked\r\n") + "0\r\n\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_EQ(calls_, 0);
  EXPECT_THAT(Exchange(Post("/post", "", Close())), StartsWith("HTTP/1.1 200 "));
}

// Each byte must not buy it more time.
TEST_F(HttpServerPost, ABodyThatComesByteAfterByteIsGivenUp) {
  Restart({.body_bytes = kLimit, .body_time = 50ms});
  RawConnection slow(server_->port()), silent(server_->port());
  for (RawConnection* connection : {&slow, &silent}) connection->Send(Header("/post", "Content-Length: 100000\r\n"));
  bool is_closed = false;
  for (int bytes = 0; bytes < 4000 && !is_closed; ++bytes) {
    slow.Send("x");
    is_closed = slow.AwaitNews(5ms);
  }
  EXPECT_TRUE(is_closed);
  EXPECT_EQ(slow.Read(), "");
  EXPECT_EQ(silent.Read(), "");
  EXPECT_EQ(calls_, 0);
}

TEST_F(HttpServerPost, HalfABodyThatEndsIsNoRequestAndGivesItsMemoryBack) {
  Restart({.body_bytes = kLimit, .bodies_bytes = kLimit, .body_time = 1min});
  for (int i = 0; i < 10; ++i) {
    RawConnection connection(server_->port());
    connection.Send(Header("/post", "Content-Length: 1000000\r\n") + std::string(500'000, 'x'));
  }
  EXPECT_EQ(AwaitAnswerToTheLargest("HTTP/1.1 200"), "HTTP/1.1 200 OK");
}

TEST_F(HttpServerPost, MoreThanAllBodiesMayHaveIsTooMuchForOne) {
  Restart({.body_bytes = kLimit, .bodies_bytes = 1000});
  EXPECT_THAT(Exchange(Post("/post", std::string(1001, 'x'))), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(Exchange(Post("/post", std::string(1000, 'x'), Close())), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerPost, HundredsOfBodiesAtOnceAreAnsweredOrRefusedAndProbesBesideThem) {
  Restart({.body_bytes = kLimit, .bodies_bytes = 2 * kLimit, .body_time = 1min});
  std::list<RawConnection> many;
  const std::string part(kLimit / 16, 'x');
  for (int i = 0; i < 300; ++i) {
    many.emplace_back(server_->port()).Send(Header("/post", Close("Content-Length: 1000000\r\n")) + part);
    if (i % 50 == 0) {
      EXPECT_THAT(Exchange("GET /get HTTP/1.1\r\nHost: x\r\n" + Close() + "\r\n"), StartsWith("HTTP/1.1 200 ")) << i;
    }
  }
  int refused = 0;
  const auto end = std::chrono::steady_clock::now() + 20s;
  for (auto it = many.begin(); refused == 0 && std::chrono::steady_clock::now() < end;) {
    if (it == many.end()) it = many.begin();
    RawConnection& connection = *it++;
    if (!connection.AwaitNews(0ms)) continue;
    const std::string answer = connection.Read();
    if (answer.empty()) continue;  // It had to make room for another one.
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
    EXPECT_THAT(answer, HasSubstr("Retry-After: 1\r\n"));
    ++refused;
  }
  EXPECT_GT(refused, 0);
  many.clear();
  EXPECT_EQ(AwaitAnswerToTheLargest("HTTP/1.1 200"), "HTTP/1.1 200 OK");
}

}  // namespace
}  // namespace kube

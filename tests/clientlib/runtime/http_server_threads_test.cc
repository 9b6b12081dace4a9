// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

#include "clientlib/runtime/http_server.h"
#include "tests/clientlib/runtime/raw_connection.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::RawConnection;
using ::testing::StartsWith;

// Holds the handlers that come in until it is opened.
class Barrier {
 public:
  void Wait() {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait_for(lock, 20s, [&] { return is_open_; });
    --inside_;
    ++passed_;
  }
  bool AwaitInside(int wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 20s, [&] { return inside_ == wanted; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  int passed() {
    const std::lock_guard lock(mutex_);
    return passed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0, passed_ = 0;
  bool is_open_ = false;
};

std::string Get(const std::string& target) { return "GET " + target + " HTTP/1.1\r\nHost: x\r\n\r\n"; }
std::string Post(const std::string& target, const std::string& body) {
  return "POST " + target +
         " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

class HttpServerThreads : public ::testing::Test {
 protected:
  void Start(HttpServerLimits limits) {
    const auto held = [this](const ServedRequest& request) {
      barrier_.Wait();
      return HttpReply{.body = "held " + request.query + std::to_string(request.body.size())};
    };
    const auto echo = [](const ServedRequest& request) { return HttpReply{.body = "echo " + request.body}; };
    auto started = HttpServer::Start(
        "127.0.0.1:0", {{"/held", {held, HttpMethods::kGetAndPost}}, {"/echo", {echo, HttpMethods::kPost}}}, limits);
    ASSERT_TRUE(started) << started.error().message();
    server_ = *std::move(started);
  }

  Barrier barrier_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerThreads, HandlersRunBesideEachOther) {
  Start({.threads = 2});
  RawConnection first(server_->port()), second(server_->port());
  first.Send(Get("/held?1"));
  second.Send(Get("/held?2"));
  EXPECT_TRUE(barrier_.AwaitInside(2));

  barrier_.Open();

  EXPECT_THAT(first.Read("held 10"), EndsWith("held 10"));
  EXPECT_THAT(second.Read("held 20"), EndsWith("held 20"));
}

TEST_F(HttpServerThreads, OneThreadRunsOneAtATime) {
  Start({});
  RawConnection first(server_->port()), second(server_->port());
  first.Send(Get("/held?1"));
  second.Send(Get("/held?2"));
  EXPECT_TRUE(barrier_.AwaitInside(1));

  EXPECT_FALSE(first.AwaitNews(0ms));
  barrier_.Open();

  EXPECT_THAT(first.Read("held 10"), EndsWith("held 10"));
  EXPECT_THAT(second.Read("held 20"), EndsWith("held 20"));
}

// Requests of one connection are answered one after the other, in order.
TEST_F(HttpServerThreads, AConnectionHasOneRequestAtATime) {
  Start({.threads = 4});
  RawConnection connection(server_->port());
  connection.Send(Get("/held?1") + Get("/held?2") + Get("/held?3"));
  EXPECT_TRUE(barrier_.AwaitInside(1));
  EXPECT_FALSE(connection.AwaitNews(0ms));
  barrier_.Open();
  const std::string answers = connection.Read("held 30");
  EXPECT_LT(answers.find("held 10"), answers.find("held 20"));
  EXPECT_THAT(answers, EndsWith("held 30"));
}

TEST_F(HttpServerThreads, ReadsAndRefusesWhileAllHandlersAreBusy) {
  Start({.body_bytes = 1000, .threads = 2});
  RawConnection first(server_->port()), second(server_->port()), third(server_->port()), fourth(server_->port());
  first.Send(Get("/held?1"));
  second.Send(Get("/held?2"));
  EXPECT_TRUE(barrier_.AwaitInside(2));

  third.Send(Get("/echo"));
  EXPECT_THAT(third.Read(), StartsWith("HTTP/1.1 405 "));
  fourth.Send(Post("/echo", std::string(1001, 'x')));
  EXPECT_THAT(fourth.Read(), StartsWith("HTTP/1.1 413 "));
  barrier_.Open();
}

TEST_F(HttpServerThreads, ABodyCountsUntilItIsAnswered) {
  constexpr std::size_t kAll = 100'000;
  Start({.body_bytes = kAll, .bodies_bytes = kAll, .threads = 2});
  RawConnection first(server_->port());
  first.Send(Post("/held", std::string(60'000, 'x')));
  EXPECT_TRUE(barrier_.AwaitInside(1));

  RawConnection second(server_->port());
  second.Send(Post("/echo", std::string(60'000, 'y')));
  const std::string refused = second.Read();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1\r\n"));
  RawConnection small(server_->port());
  small.Send(Post("/echo", "small"));
  EXPECT_THAT(small.Read(), EndsWith("echo small"));

  barrier_.Open();
  EXPECT_THAT(first.Read(), EndsWith("held 60000"));
  RawConnection third(server_->port());
  third.Send(Post("/echo", std::string(kAll, 'z')));
  EXPECT_THAT(third.Read(), EndsWith(std::string(kAll, 'z')));
}

TEST_F(HttpServerThreads, AClientThatGoesAwayWhileItsHandlerRunsChangesNothing) {
  Start({.body_bytes = 100'000, .bodies_bytes = 100'000, .threads = 2});
  for (int i = 0; i < 2; ++i) {
    RawConnection(server_->port()).Send(Post("/held", std::string(40'000, 'x')));
    EXPECT_TRUE(barrier_.AwaitInside(i + 1));
  }

  barrier_.Open();

  // Their memory comes back, and threads for others.
  const auto end = std::chrono::steady_clock::now() + 20s;
  std::string answer;
  do {
    RawConnection next(server_->port());
    next.Send(Post("/echo", std::string(100'000, 'y')));
    answer = next.Read();
  } while (!answer.starts_with("HTTP/1.1 200") && std::chrono::steady_clock::now() < end);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerThreads, WhatIsBeingAnsweredMakesNoRoomForNewConnections) {
  Start({.connections = 2, .threads = 2});
  std::list<RawConnection> held;
  for (int i = 1; i <= 2; ++i) {
    held.emplace_back(server_->port()).Send(Get("/held?"));
    EXPECT_TRUE(barrier_.AwaitInside(i));
  }

  EXPECT_EQ(RawConnection(server_->port()).Read(), "");

  barrier_.Open();
  for (RawConnection& connection : held) EXPECT_THAT(connection.Read("held 0"), EndsWith("held 0"));
}

TEST_F(HttpServerThreads, ItsEndWaitsForTheHandlersThatRunAndDropsTheOthers) {
  Start({.threads = 2});
  std::list<RawConnection> held;
  for (int i = 0; i < 6; ++i) held.emplace_back(server_->port()).Send(Get("/held"));
  EXPECT_TRUE(barrier_.AwaitInside(2));

  std::thread ending([&] { server_.reset(); });
  // Not one is answered before the barrier opens, so the server cannot be gone either.
  EXPECT_EQ(barrier_.passed(), 0);
  barrier_.Open();
  ending.join();

  const int passed = barrier_.passed();
  EXPECT_GE(passed, 2);
  for (RawConnection& connection : held) (void)connection.Read();  // Each ends.
  EXPECT_EQ(barrier_.passed(), passed);
}

TEST_F(HttpServerThreads, AnswersManyConnectionsAtOnce) {
  Start({.body_bytes = 100'000, .threads = 4});
  std::list<std::thread> clients;
  std::atomic<int> good = 0;
  for (int client = 0; client < 8; ++client) {
    clients.emplace_back([&, client] {
      const std::string body(static_cast<std::size_t>(1000 * client + 1), static_cast<char>('a' + client));
      for (int i = 0; i < 20; ++i) {
        RawConnection connection(server_->port());
        connection.Send(Post("/echo", body));
        good += connection.Read().ends_with("\r\n\r\necho " + body) ? 1 : 0;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(good, 160);
}

}  // namespace
}  // namespace kube

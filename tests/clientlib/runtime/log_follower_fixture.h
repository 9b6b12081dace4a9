// SPDX-License-Identifier: Apache-2.0
// A follower of the log of ns/w-0, container main, with a scripted server and a sink that remembers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "clientlib/runtime/log_follower.h"
#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"

namespace kube::testing {

using namespace std::chrono_literals;

// Remembers each call: "start", "start 2026-01-02T03:04:05Z", "bytes ...", "Waiting: reason".
class RecordingLogSink final : public LogSink {
 public:
  void OnStart(std::optional<Time> since) override { Note(since ? "start " + ToText(*since) : "start"); }
  void OnBytes(std::string_view bytes) override { Note("bytes " + std::string(bytes)); }
  void OnState(LogState state, const std::string& reason) override {
    Note(std::string(ToString(state)) + (reason.empty() ? "" : ": " + reason));
  }

  // All calls, once there are `count`; fewer if they do not come within 20 s of real time.
  std::vector<std::string> Await(std::size_t count) const {
    std::unique_lock lock(mutex_);
    noted_.wait_for(lock, 20s, [&] { return calls_.size() >= count; });
    return calls_;
  }

 private:
  void Note(std::string line) {
    {
      std::lock_guard lock(mutex_);
      calls_.push_back(std::move(line));
    }
    noted_.notify_all();
  }
  mutable std::mutex mutex_;  // Guards calls_.
  mutable std::condition_variable noted_;
  std::vector<std::string> calls_;
};

class LogFollowerTest : public ::testing::Test {
 protected:
  LogFollowerTest() {
    transport_.Handle("GET", kPod, [this](const HttpRequest&, const std::stop_token&) {
      std::lock_guard lock(mutex_);
      return pod_;
    });
    SetPhase("Running");
  }

  void SetPod(Result<HttpResponse> answer) {
    std::lock_guard lock(mutex_);
    pod_ = std::move(answer);
  }
  // `more` is added to the pod's status.
  void SetPhase(const std::string& phase, const std::string& more = "", const std::string& metadata = "") {
    SetPod(JsonAnswer(200, R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"w-0","namespace":"ns","uid":"u-1",)"
                           R"("resourceVersion":"1")" +
                               metadata + R"(},"status":{"phase":")" + phase + "\"" + more + "}}"));
  }
  void Start(LogFollowerOptions options = {}) {
    options.pod = {"ns", "w-0"};
    options.container = "main";
    follower_ = std::make_unique<LogFollower>(client_, std::move(options), clock_, sink_);
    follower_->Start();
  }

  FakeStream ExpectStream() { return transport_.ExpectStream(kLog); }
  // The next stream has this body, and then ends.
  void ExpectBody(std::string body) { ExpectAnswer(HttpResponse{200, {}, std::move(body)}); }
  void ExpectAnswer(Result<HttpResponse> answer) { transport_.Expect("GET", kLog, std::move(answer)); }

  // The queries of all requests for the log, without what all have.
  std::vector<std::string> Asked() const {
    const std::string common = std::string(kLog) + "?container=main";
    std::vector<std::string> asked;
    for (const HttpRequest& request : transport_.requests()) {
      if (!request.target.starts_with(kLog)) continue;
      const std::string& target = request.target;
      asked.push_back(target.substr(common.size(), target.find("&limitBytes=") - common.size()));
    }
    return asked;
  }
  // Ends a first backoff: 0.8 to 1.6 s.
  void PassBackoff() { Pass(1600ms); }
  void Pass(Duration time) {
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(time);
  }

  static constexpr const char* kPod = "/api/v1/namespaces/ns/pods/w-0";
  static constexpr const char* kLog = "/api/v1/namespaces/ns/pods/w-0/log";
  FakeClock clock_;
  FakeTransport transport_{clock_};
  Client client_{transport_, nullptr, clock_};
  RecordingLogSink sink_;
  std::mutex mutex_;  // Guards pod_.
  Result<HttpResponse> pod_ = HttpResponse{};
  std::unique_ptr<LogFollower> follower_;
};

}  // namespace kube::testing

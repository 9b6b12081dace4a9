// SPDX-License-Identifier: Apache-2.0
// A reflector of ConfigMaps on a thread of its own, with a scripted server and a sink that remembers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "clientlib/cache/reflector.h"
#include "clientlib/model/core_v1.h"
#include "clientlib/testing/fake_clock.h"
#include "clientlib/testing/fake_transport.h"
#include "tests/clientlib/cache/map_answers.h"

namespace kube::testing {

using namespace std::chrono_literals;

// Remembers each call: "replace 7: a@5 b@6", "put a@8", "delete a@9", "bookmark 10".
class RecordingSink final : public ReflectorSink {
 public:
  void OnReplace(std::vector<ConstObject> objects, const std::string& resource_version) override {
    std::string line = "replace " + resource_version + ":";
    for (const ConstObject& object : objects) line += " " + Text(*object);
    Note(std::move(line));
  }
  void OnPut(ConstObject object) override { Note("put " + Text(*object)); }
  void OnDelete(ConstObject last_state) override { Note("delete " + Text(*last_state)); }
  void OnBookmark(const std::string& resource_version) override { Note("bookmark " + resource_version); }

  std::vector<std::string> calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  // All calls, once there are `count`; fewer if they do not come within 20 s of real time.
  std::vector<std::string> Await(std::size_t count) const {
    std::unique_lock lock(mutex_);
    noted_.wait_for(lock, 20s, [&] { return calls_.size() >= count; });
    return calls_;
  }

 private:
  static std::string Text(const Object& object) {
    return object.metadata.name + "@" + object.metadata.resource_version;
  }
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

// The value of a query's parameter; "(none)" if it is not there.
inline std::string Param(const HttpRequest& request, const std::string& name) {
  for (const char before : {'?', '&'}) {
    const std::size_t at = request.target.find(before + name + "=");
    if (at == std::string::npos) continue;
    const std::size_t begin = at + name.size() + 2;
    return request.target.substr(begin, request.target.find('&', begin) - begin);
  }
  return "(none)";
}

// What a request asks for: "list 0", "watch-list (none)", "watch 7".
inline std::string Asked(const HttpRequest& request) {
  const bool is_watch = Param(request, "watch") == "1";
  const bool is_initial = Param(request, "sendInitialEvents") == "true";
  return std::string(!is_watch ? "list " : is_initial ? "watch-list " : "watch ") + Param(request, "resourceVersion");
}

class ReflectorTest : public ::testing::Test {
 protected:
  ~ReflectorTest() override { Stop(); }

  void Start(ReflectorOptions options = {}) { Start(std::move(options), log_); }
  void Start(ReflectorOptions options, const Log& log) {
    reflector_ =
        std::make_unique<Reflector>(client_, KindOf<ConfigMap>(), std::move(options), clock_, log, sink_, 20260102);
    thread_ = std::jthread([this](std::stop_token stop) { reflector_->Run(std::move(stop)); });
  }
  // With list + watch, as for a server that does not know watch-list.
  void StartWithList() { Start({.use_watch_list = false}); }
  void Stop() {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

  FakeStream ExpectWatch() { return transport_.ExpectStream(kWatch); }
  // The next watch gets this body, then its end.
  void ExpectWatchBody(std::string body) { transport_.Expect("GET", kWatch, JsonAnswer(200, std::move(body))); }
  void ExpectWatchError(Result<HttpResponse> answer) { transport_.Expect("GET", kWatch, std::move(answer)); }
  void ExpectList(Result<HttpResponse> answer) { transport_.Expect("GET", kPath, std::move(answer)); }

  // What was asked for, once there were `count` requests.
  std::vector<std::string> AwaitAsked(std::size_t count) const {
    EXPECT_TRUE(transport_.AwaitRequests(count));
    std::vector<std::string> asked;
    for (const HttpRequest& request : transport_.requests()) asked.push_back(Asked(request));
    return asked;
  }
  // The same once the reflector waits on the clock: in its backoff, or for bytes.
  std::vector<std::string> AskedWhenIdle() const {
    EXPECT_TRUE(clock_.AwaitWaiters(1));
    return AwaitAsked(0);
  }
  // Ends a first backoff: 0.8 to 1.6 s.
  void PassBackoff() {
    ASSERT_TRUE(clock_.AwaitWaiters(1));
    clock_.Advance(1600ms);
  }

  static constexpr const char* kPath = "/api/v1/configmaps";
  static constexpr const char* kWatch = "/api/v1/configmaps?watch=1";
  FakeClock clock_;
  FakeTransport transport_{clock_};
  Client client_{transport_, nullptr, clock_};
  Log log_{LogLevel::kOff};
  RecordingSink sink_;
  std::unique_ptr<Reflector> reflector_;
  std::jthread thread_;
};

}  // namespace kube::testing

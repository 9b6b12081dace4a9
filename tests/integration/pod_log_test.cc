// SPDX-License-Identifier: Apache-2.0
// Logs that are followed through the real API server, from files that kwok plays as containers' logs.
#include <gtest/gtest.h>

#include <condition_variable>
#include <fstream>
#include <mutex>

#include "clientlib/runtime/log_follower.h"
#include "tests/integration/elastic_job.h"
#include "tests/kit/local_cluster.h"

namespace grus::testing {
namespace {

using kube::LogFollower;
using kube::LogState;
using std::chrono::seconds;

// The lines of a log, each once, as whoever reads one makes them of what a follower gives.
class Lines final : public kube::LogSink {
 public:
  void OnStart(std::optional<kube::Time>) override {
    std::lock_guard lock(mutex_);
    unfinished_.clear();
  }
  void OnBytes(std::string_view bytes) override {
    std::lock_guard lock(mutex_);
    for (const char c : bytes) {
      if (c != '\n') {
        unfinished_ += c;
        continue;
      }
      // The times of a test's lines differ, and are all of one width.
      const std::string time = unfinished_.substr(0, unfinished_.find(' '));
      if (time > last_time_) {
        last_time_ = time;
        lines_.push_back(unfinished_.substr(std::min(unfinished_.size(), time.size() + 1)));
      }
      unfinished_.clear();
    }
    changed_.notify_all();
  }
  void OnState(LogState state, const std::string& reason) override {
    std::lock_guard lock(mutex_);
    state_ = state;
    reason_ = reason;
    changed_.notify_all();
  }

  std::vector<std::string> Await(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, World::kLimit, [&] { return lines_.size() >= count; });
    return lines_;
  }
  bool Await(LogState state) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, World::kLimit, [&] { return state_ == state; });
  }
  bool AwaitRefusal(std::string_view reason) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, World::kLimit,
                             [&] { return state_ == LogState::kRefused && reason_.find(reason) != std::string::npos; });
  }
  std::string reason() const {
    std::lock_guard lock(mutex_);
    return reason_;
  }

 private:
  mutable std::mutex mutex_;  // Guards all below.
  std::condition_variable changed_;
  std::string unfinished_, last_time_;
  std::vector<std::string> lines_;
  LogState state_ = LogState::kWaiting;
  std::string reason_;
};

class PodLog : public ElasticJob {
 protected:
  static void SetUpTestSuite() { StartWorld(); }

  void MakePod() {
    kube::Json pod = FromText(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"train"},
        "spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"none"}]}})");
    pod["spec"]["nodeName"] = AddNode(0);
    world().Create(kube::KindOf<kube::Pod>(), ns(), pod);
    ASSERT_TRUE(Await("it runs", [&] {
      const auto made = world().Get<kube::Pod>(ns(), "train");
      return made && made->status.phase == "Running";
    }));
    file_ = kit::PodLogFile(ns(), "train");
  }
  // Line number i at second i / 10, so that ten lines share each second.
  void Write(int from, int to) {
    std::ofstream log(file_, std::ios::app);
    for (int i = from; i < to; ++i) {
      char time[64];
      std::snprintf(time, sizeof time, "2026-01-02T03:%02d:%02d.%d00000000Z", i / 600, i / 10 % 60, i % 10);
      log << time << " stdout F line " << i << "\n";
    }
  }
  static std::vector<std::string> Expected(int count) {
    std::vector<std::string> lines;
    for (int i = 0; i < count; ++i) lines.push_back("line " + std::to_string(i));
    return lines;
  }
  std::unique_ptr<LogFollower> Follow(kube::Client& from, Lines& lines) {
    kube::LogFollowerOptions options{.pod = {ns(), "train"}, .container = "main"};
    options.look_after = seconds(2);  // kwok's streams do not end with their container.
    auto follower = std::make_unique<LogFollower>(from, std::move(options), clock_, lines);
    follower->Start();
    return follower;
  }

  kube::SystemClock clock_;

 private:
  std::string file_;
};

TEST_F(PodLog, AFollowerGetsEachLineOnceUntilTheContainerEnds) {
  MakePod();
  Write(0, 25);
  Lines lines;
  const auto follower = Follow(client(), lines);
  EXPECT_EQ(lines.Await(25), Expected(25));
  for (int count = 26; count <= 100; ++count) Write(count - 1, count);
  EXPECT_EQ(lines.Await(100), Expected(100));

  Write(100, 105);
  SetOutcome("train", "succeed");

  EXPECT_TRUE(lines.Await(LogState::kEnded)) << lines.reason();
  EXPECT_EQ(lines.Await(105), Expected(105));
}

TEST_F(PodLog, AFollowerThatMayNotReadItSaysWhichPermissionItLacks) {
  MakePod();
  const kube::Json role = FromText(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role",
      "metadata":{"name":"see-pods"},"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]})");
  const kube::Json binding = FromText(R"({"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding",
      "metadata":{"name":"see-pods"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"see-pods"},
      "subjects":[{"kind":"User","name":"mallory"}]})");
  const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + ns();
  ASSERT_EQ(world().Send("POST", rbac + "/roles", "application/json", ToText(role)).status, 201);
  ASSERT_EQ(world().Send("POST", rbac + "/rolebindings", "application/json", ToText(binding)).status, 201);
  kube::TransportOptions options;
  options.server = world().config().server;
  options.ca_pem = world().config().ca_pem;
  options.cert_pem = world().config().cert_pem;
  options.key_pem = world().config().key_pem;
  const auto transport = Must(kube::CurlTransport::Create(options, clock_));
  kube::Client mallory(*transport, nullptr, clock_, {.headers = {{"Impersonate-User", "mallory"}}});
  Lines lines;
  const auto follower = Follow(mallory, lines);
  // Not at once: the API server's authorizer hears of the role, which lets the pod itself be seen, a moment later.
  EXPECT_TRUE(lines.AwaitRefusal("User \"mallory\" cannot get resource \"pods/log\"")) << lines.reason();
}

}  // namespace
}  // namespace grus::testing

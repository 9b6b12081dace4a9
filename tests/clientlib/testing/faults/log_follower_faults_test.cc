// SPDX-License-Identifier: Apache-2.0
// LogFollower in virtual time: whatever happens to its streams, whoever reads on gets each line once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/runtime/log_follower.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "clientlib/testing/faults/faulty_network.h"
#include "clientlib/testing/simulation/simulation.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kPods = 64;

// Whole lines, each once: what is not after the last one came again. The times of a test's lines differ.
class Lines final : public LogSink {
 public:
  void OnStart(std::optional<Time>) override { unfinished_.clear(); }
  void OnBytes(std::string_view bytes) override {
    for (const char c : bytes) {
      if (c != '\n') {
        unfinished_ += c;
      } else {
        const std::string time = unfinished_.substr(0, unfinished_.find(' '));
        if (time > last_time_) {
          last_time_ = time;
          lines.push_back(unfinished_.substr(std::min(unfinished_.size(), time.size() + 1)));
        }
        unfinished_.clear();
      }
    }
  }
  void OnState(LogState to, const std::string&) override { state = to; }

  std::vector<std::string> lines;
  LogState state = LogState::kWaiting;

 private:
  std::string unfinished_, last_time_;
};

class LogFollowerFaults : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static ObjectKey KeyOf(int pod) { return {"default", "w-" + std::to_string(pod)}; }
  void MakePod(int pod) {
    Result<Json> object = ParseJson(R"({"metadata":{"name":")" + KeyOf(pod).name + R"(","namespace":"default"},
        "spec":{"nodeName":"node-0","containers":[{"name":"main","image":"i"}]}})");
    ASSERT_TRUE(server_.Create("pods", *std::move(object)));
  }
  void SetStatus(int pod, const std::string& phase, const std::string& state) {
    Json object = *server_.Get("pods", KeyOf(pod));
    Result<Json> status =
        ParseJson(R"({"phase":")" + phase + R"(","containerStatuses":[{"name":"main","state":)" + state + "}]}");
    ASSERT_TRUE(status);
    object["status"] = *std::move(status);
    ASSERT_TRUE(server_.Update("pods", std::move(object), "status"));
  }

  Simulation simulation_{GetParam()};
  FakeApiServer server_{simulation_, {.seed = GetParam()}};
};

TEST_P(LogFollowerFaults, EachLineComesOnceWhateverHappensToTheStreams) {
  Result<Schedule> schedule = ParseSchedule(
      "net seed=1 open-503@3 open-refused@70 open-busy@80 open-gone@90 open-html@95 watch-cut@9 watch-cut@60 "
      "watch-cut@210 watch-silent@33 watch-late@44 watch-hidden@150 watch-drip@55 watch-closed@66 watch-closed@166 "
      "watch-garbage@88 watch-gone@99 watch-twice@111");
  ASSERT_TRUE(schedule) << schedule.error().message();
  FaultyNetwork network(simulation_, server_, schedule->faults, {});
  const std::unique_ptr<Transport> transport = network.Attach(0, "");
  Client client(*transport, nullptr, simulation_);
  std::vector<std::unique_ptr<Lines>> sinks;
  std::vector<std::unique_ptr<LogFollower>> followers;
  for (int pod = 0; pod < kPods; ++pod) {
    MakePod(pod);
    sinks.push_back(std::make_unique<Lines>());
    followers.push_back(
        std::make_unique<LogFollower>(client, LogFollowerOptions{.pod = KeyOf(pod)}, simulation_, *sinks.back()));
    followers.back()->Start();
  }
  simulation_.RunFor(10s);
  for (int pod = 0; pod < kPods; ++pod) SetStatus(pod, "Running", R"({"running":{}})");

  // Each pod writes lines at random times, some in two parts; now and then all streams break, also within lines.
  std::vector<std::vector<std::string>> written(kPods);
  for (int step = 0; step < 400; ++step) {
    const auto pod = static_cast<int>(simulation_.random()() % kPods);
    auto& lines = written[static_cast<std::size_t>(pod)];
    lines.push_back("line " + std::to_string(lines.size()));
    const bool has_parts = simulation_.OneIn(3);
    server_.AppendPodLog(KeyOf(pod), "main", simulation_.WallNow(), lines.back().substr(0, has_parts ? 3 : 99));
    if (has_parts) {
      simulation_.RunFor(simulation_.Between(1ms, 200ms));
      if (simulation_.OneIn(10)) server_.BreakStreams();
      simulation_.RunFor(simulation_.Between(0ms, 2s));
      server_.AppendPodLog(KeyOf(pod), "main", simulation_.WallNow(), lines.back().substr(3));
    }
    server_.AppendPodLog(KeyOf(pod), "main", simulation_.WallNow(), "\n");
    simulation_.RunFor(simulation_.Between(1ms, 500ms));
    if (simulation_.OneIn(20)) server_.BreakStreams();
  }
  for (int pod = 0; pod < kPods; ++pod) SetStatus(pod, "Succeeded", R"({"terminated":{"exitCode":0}})");
  simulation_.RunFor(10min);

  for (std::size_t pod = 0; pod < kPods; ++pod) {
    EXPECT_EQ(sinks[pod]->lines, written[pod]) << "pod " << pod << ", seed " << GetParam();
    EXPECT_EQ(sinks[pod]->state, LogState::kEnded) << "pod " << pod << ", seed " << GetParam();
  }
  EXPECT_TRUE(network.all_faults_happened());
  EXPECT_TRUE(network.breaches().empty());
  for (const auto& follower : followers) follower->RequestStop();
  simulation_.RunFor(1s);
}

INSTANTIATE_TEST_SUITE_P(Seeds, LogFollowerFaults, ::testing::Range<std::uint64_t>(1, 51));

}  // namespace
}  // namespace kube::testing

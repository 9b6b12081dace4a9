// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/kubelet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/clientlib/testing/cluster/cluster_world.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::StartsWith;

Json PodWith(std::initializer_list<std::pair<std::string_view, std::string_view>> annotations,
             std::string_view restart_policy = "Always") {
  Json pod = ClusterWorld::Pod("a");
  pod["spec"]["restartPolicy"] = restart_policy;
  for (const auto& [name, value] : annotations) pod["metadata"]["annotations"][name] = value;
  return pod;
}

void Annotate(ClusterWorld& world, std::string_view name, std::string_view value) {
  world.Change("pods", "a", [&](Json& pod) { pod["metadata"]["annotations"][name] = value; });
}
void TakeOff(ClusterWorld& world, std::string_view name) {
  world.Change("pods", "a", [&](Json& pod) { pod["metadata"]["annotations"].Erase(name); });
}

Json ContainerOf(ClusterWorld& world) {
  return ItemsAt(world.Get("pods", "a"), {"status", "containerStatuses"}).front();
}
std::string ConditionText(ClusterWorld& world, std::string_view type) {
  const Json pod = world.Get("pods", "a");
  const Json* const condition = ConditionOf(pod, type);
  if (!condition) return "none";
  return std::string(TextAt(*condition, {"status"})) + " " + std::string(TextAt(*condition, {"reason"})) + ": " +
         std::string(TextAt(*condition, {"message"}));
}

bool HasStatus(ClusterWorld& world) {
  return !ItemsAt(world.Get("pods", "a"), {"status", "containerStatuses"}).empty();
}

// "running 0", "ErrImagePull 0", "terminated 2": what the container does, and how often it was started again.
std::string StateOf(ClusterWorld& world) {
  const Json container = ContainerOf(world);
  const std::string restarts = " " + std::to_string(IntAt(container, {"restartCount"}));
  if (container.At({"state", "running"})) return (IsTrueAt(container, {"ready"}) ? "ready" : "running") + restarts;
  if (container.At({"state", "terminated"})) return "terminated" + restarts;
  return std::string(TextAt(container, {"state", "waiting", "reason"})) + restarts;
}

struct Turn {
  std::string state;
  double lasted;  // Seconds.
};
// The states that the container went through, until it has been in one for `quiet`.
std::vector<Turn> Watch(ClusterWorld& world, Duration quiet) {
  std::vector<Turn> turns;
  for (bool is_over = false; !is_over;) {
    const TimePoint since = world.simulation.Now();
    const std::string state = StateOf(world);
    is_over = !world.simulation.RunUntil([&] { return StateOf(world) != state; }, since + quiet);
    turns.push_back({state, world.SecondsSince(since)});
  }
  return turns;
}
std::vector<std::string> Names(const std::vector<Turn>& turns) {
  std::vector<std::string> names;
  for (const Turn& turn : turns) names.push_back(turn.state);
  return names;
}

TEST(Kubelet, RunsPodsWithAddressesOfTheirOwn) {
  ClusterWorld world;
  world.Create("pods", ClusterWorld::Pod("a"));
  world.Create("pods", ClusterWorld::Pod("b"));

  world.Run(10s);

  const Json a = world.Get("pods", "a"), b = world.Get("pods", "b");
  EXPECT_TRUE(IsRunningAndReady(a));
  EXPECT_THAT(std::string(TextAt(a, {"status", "podIP"})), StartsWith("10."));
  EXPECT_NE(TextAt(a, {"status", "podIP"}), TextAt(b, {"status", "podIP"}));
  EXPECT_THAT(std::string(TextAt(a, {"status", "hostIP"})), StartsWith("10.1."));
  const Json& container = ItemsAt(a, {"status", "containerStatuses"}).front();
  EXPECT_FALSE(TextAt(container, {"state", "running", "startedAt"}).empty());
}

TEST(Kubelet, ContainersWaitAsTheyAreToldAndStartOnceTheyMay) {
  ClusterWorld world;
  world.Create("pods", PodWith({{"grus.test/waiting", "ErrImageNeverPull: Container image \"x\" is: not there"}}));

  world.Run(1min);

  const Json pod = world.Get("pods", "a");
  EXPECT_EQ(PhaseOf(pod), "Pending");
  EXPECT_EQ(ConditionText(world, "Ready"), "False ContainersNotReady: containers with unready status: [c]");
  EXPECT_EQ(ConditionText(world, "ContainersReady"), ConditionText(world, "Ready"));
  EXPECT_TRUE(HasTrueCondition(pod, "PodScheduled"));
  EXPECT_TRUE(HasTrueCondition(pod, "Initialized"));
  // The pod's network is there before its images.
  EXPECT_TRUE(HasTrueCondition(pod, "PodReadyToStartContainers"));
  const std::string ip(TextAt(pod, {"status", "podIP"}));
  EXPECT_THAT(ip, StartsWith("10."));
  EXPECT_EQ(TextAt(ContainerOf(world), {"state", "waiting", "message"}), "Container image \"x\" is: not there");
  EXPECT_EQ(StateOf(world), "ErrImageNeverPull 0");

  TakeOff(world, "grus.test/waiting");
  world.Run(5s);
  EXPECT_TRUE(IsRunningAndReady(world.Get("pods", "a")));
  EXPECT_EQ(TextAt(world.Get("pods", "a"), {"status", "podIP"}), ip);
}

TEST(Kubelet, APodWhoseVolumesAreMissingHasNoAddress) {
  ClusterWorld world;
  world.Create("pods", PodWith({{"grus.test/waiting", "ContainerCreating"}}));

  world.Run(1min);

  const Json pod = world.Get("pods", "a");
  EXPECT_EQ(TextAt(pod, {"status", "podIP"}), "");
  EXPECT_FALSE(HasTrueCondition(pod, "PodReadyToStartContainers"));
  EXPECT_EQ(StateOf(world), "ContainerCreating 0");
  EXPECT_FALSE(ContainerOf(world).At({"state", "waiting", "message"}));
}

TEST(Kubelet, PullsAreTriedAgainWithGrowingDelays) {
  ClusterWorld world;
  world.Create("pods", PodWith({{"grus.test/waiting", "ErrImagePull: no such host"}}));
  world.Run(3s);
  ASSERT_EQ(StateOf(world), "ErrImagePull 0");
  EXPECT_EQ(TextAt(ContainerOf(world), {"state", "waiting", "message"}), "no such host");

  const std::vector<Turn> turns = Watch(world, 4min);

  // What was tried and what was put off take turns, and more and more looks are put off.
  ASSERT_GE(turns.size(), 7U);
  for (std::size_t i = 0; i < turns.size(); ++i) {
    EXPECT_EQ(turns[i].state, i % 2 == 0 ? "ErrImagePull 0" : "ImagePullBackOff 0") << i;
  }
  EXPECT_THAT(turns[1].lasted, AllOf(Ge(9), Le(31)));
  EXPECT_THAT(turns[5].lasted, AllOf(Ge(30), Le(76)));
  EXPECT_EQ(TextAt(ContainerOf(world), {"state", "waiting", "message"}),
            "Back-off pulling image \"registry.test/x\": ErrImagePull: no such host");

  TakeOff(world, "grus.test/waiting");
  world.Run(5min);
  EXPECT_TRUE(IsRunningAndReady(world.Get("pods", "a")));
}

TEST(Kubelet, APodIsBeingCreatedBeforeItRuns) {
  ClusterWorld world;
  world.cluster.options().late_ready_one_in = 1 << 30;  // None, that is.
  world.Create("pods", PodWith({}));

  world.RunUntil([&] { return HasStatus(world); });

  EXPECT_EQ(TextAt(world.Get("pods", "a"), {"status", "podIP"}), "");
  EXPECT_THAT(Names(Watch(world, 10s)), ElementsAre("ContainerCreating 0", "ready 0"));
}

// As the kubelet has it: first the containers have ended, then the pod.
TEST(Kubelet, ThePhaseFollowsTheEndOfTheContainers) {
  ClusterWorld world;
  world.cluster.options().relist = {1s, 1s};
  world.Create("pods", PodWith({}, "Never"));
  world.Run(10s);

  Annotate(world, "grus.test/outcome", "fail");
  world.Run(500ms);
  EXPECT_EQ(StateOf(world), "terminated 0");
  EXPECT_EQ(ConditionText(world, "Ready"), "False PodFailed: ");
  EXPECT_EQ(PhaseOf(world.Get("pods", "a")), "Running");
  world.Run(1s);
  EXPECT_EQ(PhaseOf(world.Get("pods", "a")), "Failed");
}

TEST(Kubelet, ACrashedContainerStartsAgainInItsPod) {
  ClusterWorld world;
  world.cluster.options().late_ready_one_in = 1 << 30;  // None, that is.
  world.Create("pods", PodWith({}));
  world.Run(10s);
  const Json before = world.Get("pods", "a");

  Annotate(world, "grus.test/crash", "1");
  EXPECT_THAT(Names(Watch(world, 1min)), ElementsAre("ready 0", "terminated 0", "ready 1"));

  const Json after = world.Get("pods", "a");
  EXPECT_EQ(UidOf(after), UidOf(before));
  EXPECT_EQ(TextAt(after, {"status", "podIP"}), TextAt(before, {"status", "podIP"}));
  EXPECT_TRUE(IsRunningAndReady(after));
  EXPECT_EQ(IntAt(ContainerOf(world), {"lastState", "terminated", "exitCode"}), 1);
  EXPECT_EQ(TextAt(ContainerOf(world), {"lastState", "terminated", "reason"}), "Error");
}

TEST(Kubelet, APodIsNotReadyWhileItsContainerIsDown) {
  ClusterWorld world;
  world.cluster.options().relist = {1s, 1s};
  world.Create("pods", PodWith({{"grus.test/exit-code", "139"}}));
  world.Run(10s);

  Annotate(world, "grus.test/crash", "1");
  world.Run(500ms);

  EXPECT_EQ(PhaseOf(world.Get("pods", "a")), "Running");
  EXPECT_EQ(ConditionText(world, "Ready"), "False ContainersNotReady: containers with unready status: [c]");
  EXPECT_EQ(IntAt(ContainerOf(world), {"state", "terminated", "exitCode"}), 139);
}

TEST(Kubelet, AContainerThatKeepsCrashingIsPutOffLongerAndLonger) {
  ClusterWorld world;
  world.Create("pods", PodWith({{"grus.test/crash", "1"}}));
  world.Run(5s);
  ASSERT_EQ(StateOf(world), "ready 1");
  const std::string uid(UidOf(world.Get("pods", "a")));
  const auto message = [&] { return std::string(TextAt(ContainerOf(world), {"state", "waiting", "message"})); };
  const std::string about = " restarting failed container=c pod=a_default(" + uid + ")";

  Annotate(world, "grus.test/crash", "2");
  world.RunUntil([&] { return StateOf(world) == "CrashLoopBackOff 1"; });
  EXPECT_EQ(message(), "back-off 10s" + about);
  EXPECT_EQ(IntAt(ContainerOf(world), {"lastState", "terminated", "exitCode"}), 1);
  EXPECT_EQ(PhaseOf(world.Get("pods", "a")), "Running");
  world.RunUntil([&] { return StateOf(world) == "ready 2"; });

  Annotate(world, "grus.test/crash", "6");
  std::vector<Turn> turns = Watch(world, 10min);
  std::erase_if(turns, [](const Turn& turn) { return !turn.state.starts_with("ready"); });
  EXPECT_EQ(turns.back().state, "ready 6");
  world.Run(11min);  // Then it is as if it had never crashed.
  Annotate(world, "grus.test/crash", "7");
  world.Run(3s);
  EXPECT_EQ(StateOf(world), "ready 7");
}

TEST(Kubelet, BackOffsDoubleUpToFiveMinutes) {
  ClusterWorld world;
  world.Create("pods", PodWith({{"grus.test/crash", "9"}}));
  world.RunUntil([&] { return HasStatus(world); });

  double down = 0;
  std::vector<double> downs;
  for (const Turn& turn : Watch(world, 20min)) {
    if (turn.state.starts_with("terminated") || turn.state.starts_with("CrashLoop")) {
      down += turn.lasted;
    } else if (down > 0) {
      downs.push_back(std::exchange(down, 0));
    }
  }

  constexpr double kLeast[] = {0, 10, 20, 40, 80, 160, 300, 300, 300};
  ASSERT_EQ(downs.size(), 9U);
  for (std::size_t i = 0; i < downs.size(); ++i) {
    EXPECT_THAT(downs[i], AllOf(Ge(kLeast[i]), Le(1.5 * kLeast[i] + 92))) << i;
  }
}

TEST(Kubelet, WithoutRestartsACrashIsTheEnd) {
  ClusterWorld world;
  world.Create("pods", PodWith({{"grus.test/exit-code", "97"}}, "Never"));
  world.Run(10s);

  Annotate(world, "grus.test/crash", "1");
  world.Run(2s);

  EXPECT_EQ(PhaseOf(world.Get("pods", "a")), "Failed");
  EXPECT_EQ(IntAt(ContainerOf(world), {"state", "terminated", "exitCode"}), 97);
}

TEST(Kubelet, APodThatStopsSlowlyIsReadyUntilItsEnd) {
  ClusterWorld world;
  world.Create("pods", PodWith({{"grus.test/stop-seconds", "20"}}));
  world.Run(10s);

  world.Delete("pods", "a");
  world.Run(19s);
  EXPECT_TRUE(IsBeingDeleted(world.Get("pods", "a")));
  EXPECT_TRUE(IsRunningAndReady(world.Get("pods", "a")));
  world.Run(2s);
  EXPECT_THAT(world.PodNames(), IsEmpty());
}

TEST(Kubelet, KillsWhatDoesNotStopInTime) {
  struct Case {
    const char* hook;
    const char* stop_seconds;
    double lasts;
    int exit_code;
  };
  for (const Case& c : {Case{"{}", "10", 10, 143}, Case{"{}", "60", 30, 137},
                        Case{R"({"preStop": {"exec": {"command": ["sleep", "60"]}}})", "60", 32, 137}}) {
    ClusterWorld world;
    Json pod = PodWith({{"grus.test/stop-seconds", c.stop_seconds}});
    pod["spec"]["containers"].AsArray()->front()["lifecycle"] = *ParseJson(c.hook);
    pod["metadata"]["finalizers"].Append("example.com/stay");
    world.Create("pods", std::move(pod));
    world.Run(10s);
    const TimePoint start = world.simulation.Now();

    world.Delete("pods", "a");
    world.RunUntil([&] { return world.CountPods("Failed") == 1; });

    EXPECT_NEAR(world.SecondsSince(start), c.lasts, 0.2) << c.hook << c.stop_seconds;
    EXPECT_EQ(IntAt(ContainerOf(world), {"state", "terminated", "exitCode"}), c.exit_code) << c.hook;
  }
}

TEST(Kubelet, APodThatNeverRanFailsWhenItIsDeleted) {
  ClusterWorld world;
  Json pod = PodWith({{"grus.test/waiting", "ErrImagePull: gone"}, {"grus.test/stop-seconds", "25"}});
  pod["metadata"]["finalizers"].Append("example.com/stay");
  world.Create("pods", std::move(pod));
  world.Run(10s);

  world.Delete("pods", "a");
  world.Run(5s);

  EXPECT_EQ(PhaseOf(world.Get("pods", "a")), "Failed");
  EXPECT_EQ(TextAt(ContainerOf(world), {"state", "terminated", "reason"}), "ContainerStatusUnknown");
  EXPECT_EQ(IntAt(ContainerOf(world), {"state", "terminated", "exitCode"}), 137);
}

TEST(Kubelet, AContainerWithAReadinessProbeIsReadyLateAndOneWithAStartupProbeStartsLate) {
  for (const char* probe : {"readinessProbe", "startupProbe"}) {
    const bool starts_late = probe == std::string_view("startupProbe");
    ClusterWorld world;
    world.cluster.options().late_ready_one_in = 1 << 30;  // None, that is.
    world.cluster.options().start = {2s, 2s};
    Json pod = PodWith({});
    pod["spec"]["containers"].AsArray()->front()[probe] = *ParseJson(R"({"exec": {"command": ["true"]}})");
    world.Create("pods", std::move(pod));
    world.RunUntil([&] { return world.CountPods("Running") == 1; });
    EXPECT_EQ(StateOf(world), "running 0") << probe;
    EXPECT_EQ(IsTrueAt(ContainerOf(world), {"started"}), !starts_late) << probe;
    EXPECT_EQ(ConditionText(world, "Ready"), "False ContainersNotReady: containers with unready status: [c]") << probe;
    world.Run(3s);
    EXPECT_EQ(StateOf(world), "ready 0") << probe;
    EXPECT_TRUE(IsTrueAt(ContainerOf(world), {"started"})) << probe;
  }
}

}  // namespace
}  // namespace kube::testing

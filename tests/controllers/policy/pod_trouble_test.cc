// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_trouble.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

kube::Pod PodWith(const std::string& container_statuses, const std::string& more = "") {
  auto pod = kube::Decode<kube::Pod>(
      R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"worker","image":"x/y:1"}]},"status":{)" + more +
      R"("containerStatuses":[)" + container_statuses + "]}}");
  EXPECT_TRUE(pod) << container_statuses;
  return pod ? **pod : kube::Pod();
}

TEST(PodTrouble, IsToldInTheKubeletsWords) {
  struct Case {
    const char* status;  // Of container worker, but for its name.
    const char* trouble;
  };
  const Case kCases[] = {
      {R"("state":{"running":{}},"ready":true)", ""},
      {R"("state":{"running":{}})", ""},
      {R"("state":{"waiting":{"reason":"ContainerCreating"}})", ""},
      {R"("state":{"waiting":{"reason":"PodInitializing"}})", ""},
      {R"("state":{"terminated":{"exitCode":0,"reason":"Completed"}})", ""},
      {R"("state":{"waiting":{"reason":"ErrImagePull","message":"x/y:1: not found"}})",
       R"(container worker cannot pull image "x/y:1": x/y:1: not found)"},
      {R"("state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image \"x/y:1\": ErrImagePull: x/y:1: not found"}})",
       R"(container worker cannot pull image "x/y:1": x/y:1: not found)"},
      {R"("state":{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image \"x/y:1\""}})",
       R"(container worker cannot pull image "x/y:1")"},
      {R"("state":{"waiting":{"reason":"ErrImageNeverPull","message":"Container image \"x/y:1\" is not present with pull policy of Never"}})",
       R"(container worker cannot pull image "x/y:1": Container image "x/y:1" is not present with pull policy of Never)"},
      {R"("state":{"waiting":{"reason":"InvalidImageName","message":"couldn't parse image name"}})",
       "container worker does not start: InvalidImageName: couldn't parse image name"},
      {R"("state":{"waiting":{"reason":"CreateContainerConfigError","message":"secret \"a\" not found"}})",
       R"(container worker does not start: CreateContainerConfigError: secret "a" not found)"},
      {R"("state":{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 20s restarting failed container"}},)"
       R"("lastState":{"terminated":{"exitCode":127,"reason":"Error","message":"one\n/bin/sh: 9: exec: sshd: not found\n"}})",
       "container worker ends again and again: exit code 127: /bin/sh: 9: exec: sshd: not found"},
      {R"("state":{"running":{}},"ready":true,"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}})", ""},
      {R"("state":{"running":{}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}})",
       "container worker ended: exit code 137 (OOMKilled)"},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(TroubleOf(PodWith(std::string(R"({"name":"worker",)") + c.status + "}")), c.trouble) << c.status;
  }
}

TEST(PodTrouble, AnInitContainerKeepsThePodFromStarting) {
  const kube::Pod pod =
      PodWith(R"({"name":"worker","state":{"waiting":{"reason":"PodInitializing"}}})",
              R"("initContainerStatuses":[{"name":"fetch","state":{"waiting":{"reason":"CrashLoopBackOff"}}}],)");
  EXPECT_EQ(TroubleOf(pod), "container fetch ends again and again");
}

TEST(PodTrouble, LongTextsAreCutBetweenCharacters) {
  std::string text(299, 'x');
  text += "\xc3\xa4\xc3\xa4";
  const kube::Pod pod = PodWith(R"({"name":"worker","state":{"waiting":{"reason":"Y","message":")" + text + R"("}}})");
  EXPECT_EQ(TroubleOf(pod), "container worker does not start: Y: " + std::string(299, 'x') + "...");
}

TEST(PodTrouble, HowAPodEnded) {
  EXPECT_EQ(ErrorEndOf(PodWith("")), "");
  EXPECT_EQ(ErrorEndOf(PodWith("", R"("phase":"Failed","reason":"Evicted","message":"low on memory",)")),
            "Evicted: low on memory");
  EXPECT_EQ(ErrorEndOf(PodWith("", R"("phase":"Failed",)")), "failed");
  EXPECT_EQ(ErrorEndOf(PodWith(R"({"name":"worker","state":{"terminated":{"exitCode":1,"reason":"Error"}}})")),
            "exit code 1");
  EXPECT_EQ(
      ErrorEndOf(PodWith(R"({"name":"worker","state":{"running":{}},"lastState":{"terminated":{"exitCode":9}}})")),
      "exit code 9");
}

TEST(PodTrouble, ASchedulerIsSilentUntilItHasJudgedThePodThatItHas) {
  struct Case {
    const char* rule;
    const char* pod;
    const char* silent;
  };
  const Case kCases[] = {
      {"it has the pod", R"({"spec":{"schedulerName":"x"}})", "x"},
      {"the condition is of the time before the gate was lifted",
       R"({"spec":{"schedulerName":"x"},"status":{"conditions":[
           {"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]}})",
       "x"},
      {"it found no node", R"({"spec":{"schedulerName":"x"},"status":{"conditions":[
           {"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}})",
       ""},
      {"it found one", R"({"spec":{"schedulerName":"x","nodeName":"n"}})", ""},
      {"it may not have the pod yet", R"({"spec":{"schedulerName":"x","schedulingGates":[{"name":"g"}]}})", ""},
      {"the pod goes", R"({"metadata":{"deletionTimestamp":"2026-11-21T10:00:00Z"},"spec":{"schedulerName":"x"}})", ""},
      {"the pod has ended", R"({"spec":{"schedulerName":"x"},"status":{"phase":"Failed"}})", ""},
  };
  for (const Case& c : kCases) {
    const auto pod = kube::Decode<kube::Pod>(c.pod);
    ASSERT_TRUE(pod) << c.rule;
    EXPECT_EQ(SilentSchedulerOf(**pod), c.silent) << c.rule;
  }
}

}  // namespace
}  // namespace grus

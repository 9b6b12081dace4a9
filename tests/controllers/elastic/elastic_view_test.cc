// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/controllers/elastic/test_job.h"

namespace grus {
namespace {

using ::testing::ElementsAre;

template <typename T>
T Read(const std::string& text) {
  auto object = kube::Decode<T>(text);
  EXPECT_TRUE(object) << text;
  return object ? **object : T();
}

kube::Time TimeOf(const char* text) { return *kube::ParseTime(text); }

TEST(OrdinalOf, TakesOnlyPodsOfThatStatefulSet) {
  const std::pair<const char*, std::optional<int>> kCases[] = {
      {"bert-workers-0", 0},
      {"bert-workers-34", 34},
      {"bert-workers-", {}},
      {"bert-workers", {}},
      {"bert-workers-x", {}},
      {"bert-workers-1x", {}},
      {"bert-workers--1", {}},
      {"bert-workers2-1", {}},
      {"my-bert-workers-1", {}},
      {"bert-workers-1-2", {}},
      {"", {}},
      {"bert-workers-99999999999999", {}},
  };
  for (const auto& [pod, ordinal] : kCases) EXPECT_EQ(OrdinalOf(pod, "bert-workers"), ordinal) << pod;
}

TEST(HostList, IsReadBackAsItWasWritten) {
  HostList list;
  list.hosts = {{PodName(2), "10.0.0.7"}, {PodName(0), "10.0.0.1"}, {PodName(11), "10.1.0.1"}};
  list.slots = 4;
  list.revision = 17;
  list.published = At(5);
  const std::string text = HostListText(list);
  EXPECT_EQ(text, "revision 17\n10.0.0.7:4 bert-workers-2\n10.0.0.1:4 bert-workers-0\n10.1.0.1:4 bert-workers-11\n");

  kube::ConfigMap config_map;
  config_map.data["hosts"] = text;
  config_map.metadata.annotations[kPublishedAnnotation] = kube::ToText(list.published);
  EXPECT_EQ(ReadHostList(config_map), list);
}

TEST(HostList, AnEmptyListIsAList) {
  kube::ConfigMap config_map;
  HostList list;
  list.revision = 3;
  config_map.data["hosts"] = HostListText(list);
  const auto read = ReadHostList(config_map);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->revision, 3);
  EXPECT_THAT(read->hosts, ElementsAre());
}

TEST(HostList, ARevisionWithoutRoomForAnotherIsNone) {
  for (const char* text : {"revision 9223372036854775807\n", "revision 1000000000000001\n", "revision -1\n"}) {
    kube::ConfigMap config_map;
    config_map.data["hosts"] = text;
    kube::Pod pod;
    pod.metadata.annotations[kHostsAnnotation] = text;

    EXPECT_EQ(ReadHostList(config_map)->revision, 0) << text;
    EXPECT_EQ(ReadLauncherPod(pod, true).hosts_revision, 0) << text;
  }
}

TEST(HostList, WhatAnybodyWroteIntoTheConfigMapIsSurvived) {
  const std::vector<Host> one = {{"a", "10.0.0.1"}};
  const std::pair<const char*, std::optional<std::vector<Host>>> kCases[] = {
      {"", {}},
      {"10.0.0.1:1 a\n", {}},
      {"revision\n10.0.0.1:1 a\n", {}},
      {"revision x\n10.0.0.1:1 a\n", one},
      {"revision 99999999999999999999999\n10.0.0.1:1 a", one},
      {"revision 1\n\nno-pod:1\nno-colon x\nblank first:1\n10.0.0.1:1 a\n\n", one},
      {"revision 1\na-workers-0.a-workers:1\n", std::vector<Host>{}},  // As an older version wrote it.
  };
  for (const auto& [text, hosts] : kCases) {
    kube::ConfigMap config_map;
    config_map.data["hosts"] = text;
    const auto list = ReadHostList(config_map);
    EXPECT_EQ(list ? std::optional(list->hosts) : std::nullopt, hosts) << text;
  }
  EXPECT_FALSE(ReadHostList(kube::ConfigMap()));
}

struct PodCase {
  const char* rule;
  const char* text;
  bool has_node;
  bool gated, bound, ready, ending, lost;
};

TEST(ReadWorker, SaysWhatAPodIs) {
  const PodCase kCases[] = {
      {"just created", R"({"metadata":{"name":"p"}})", false, false, false, false, false, false},
      {"parked", R"({"spec":{"schedulingGates":[{"name":"other"},{"name":"ai.centauruscloud.io/parked"}]}})", false,
       true, false, false, false, false},
      {"another's gate", R"({"spec":{"schedulingGates":[{"name":"other"}]}})", false, false, false, false, false,
       false},
      {"bound", R"({"spec":{"nodeName":"n"}})", true, false, true, false, false, false},
      {"ready", R"({"spec":{"nodeName":"n"},"status":{"conditions":[{"type":"Ready","status":"True"}]}})", true, false,
       true, true, false, false},
      {"its node is gone", R"({"spec":{"nodeName":"n"},"status":{"conditions":[{"type":"Ready","status":"True"}]}})",
       false, false, true, true, false, true},
      {"deleted",
       R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"n"},)"
       R"("status":{"conditions":[{"type":"Ready","status":"True"}]}})",
       true, false, true, false, true, false},
      {"failed", R"({"spec":{"nodeName":"n"},"status":{"phase":"Failed"}})", true, false, true, false, true, false},
      {"succeeded", R"({"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}})", true, false, true, false, true,
       false},
  };
  for (const PodCase& c : kCases) {
    const Worker worker = ReadWorker(Read<kube::Pod>(c.text), 3, c.has_node);
    EXPECT_EQ(worker.ordinal, 3) << c.rule;
    EXPECT_EQ(worker.is_gated, c.gated) << c.rule;
    EXPECT_EQ(worker.is_bound, c.bound) << c.rule;
    EXPECT_EQ(worker.is_ready, c.ready) << c.rule;
    EXPECT_EQ(worker.is_ending, c.ending) << c.rule;
    EXPECT_EQ(worker.has_lost_node, c.lost) << c.rule;
  }
}

std::string WithScheduled(const char* status, const char* reason, const char* annotations = "{}") {
  return R"({"metadata":{"annotations":)" + std::string(annotations) +
         R"(},"status":{"conditions":[{"type":"PodScheduled","status":")" + status + R"(","reason":")" + reason +
         R"(","lastTransitionTime":"2026-01-01T10:00:00Z"}]}})";
}

TEST(ReadWorker, IsUnschedulableOnlyWhenTheSchedulerSaysSo) {
  EXPECT_EQ(ReadWorker(Read<kube::Pod>(WithScheduled("False", "Unschedulable")), 0, false).unschedulable_since,
            TimeOf("2026-01-01T10:00:00Z"));
  EXPECT_FALSE(ReadWorker(Read<kube::Pod>(WithScheduled("False", "SchedulingGated")), 0, false).unschedulable_since);
  EXPECT_FALSE(ReadWorker(Read<kube::Pod>(WithScheduled("False", "SchedulerError")), 0, false).unschedulable_since);
  const Worker bound = ReadWorker(Read<kube::Pod>(WithScheduled("True", "")), 0, false);
  EXPECT_FALSE(bound.unschedulable_since);
  EXPECT_EQ(bound.bound_since, TimeOf("2026-01-01T10:00:00Z"));
}

TEST(ReadWorker, TheGraceOfALiftedPodCountsFromItsLift) {
  // Seen on Kubernetes 1.36: PodScheduled is False from the gated pod's creation on, and stays so when the
  // gate is lifted and the pod found unschedulable; the condition's time does not move.
  const auto since = [](const char* annotations) {
    return ReadWorker(Read<kube::Pod>(WithScheduled("False", "Unschedulable", annotations)), 0, false)
        .unschedulable_since;
  };
  EXPECT_EQ(since(R"({"ai.centauruscloud.io/lifted":"2026-01-01T10:30:00Z"})"), TimeOf("2026-01-01T10:30:00Z"));
  EXPECT_EQ(since(R"({"scheduling.ai.centauruscloud.io/lifted":"2026-01-01T10:30:00Z"})"),
            TimeOf("2026-01-01T10:30:00Z"));
  EXPECT_EQ(since(R"({"ai.centauruscloud.io/lifted":"2026-01-01T09:30:00Z"})"), TimeOf("2026-01-01T10:00:00Z"));
  EXPECT_EQ(since(R"({"ai.centauruscloud.io/lifted":"nonsense"})"), TimeOf("2026-01-01T10:00:00Z"));
}

TEST(ReadLauncherPod, SaysWhetherItRunsAndWhatItWasGiven) {
  const LauncherPod pod = ReadLauncherPod(
      Read<kube::Pod>(R"({"metadata":{"name":"l","uid":"u","annotations":{"ai.centauruscloud.io/hosts":)"
                      R"("revision 12\nbert-workers-0.bert-workers:1\n"}},"spec":{"nodeName":"n"},)"
                      R"("status":{"phase":"Running"}})"),
      true);
  EXPECT_EQ(pod.name, "l");
  EXPECT_EQ(pod.uid, "u");
  EXPECT_TRUE(pod.is_running);
  EXPECT_FALSE(pod.is_ending);
  EXPECT_EQ(pod.hosts_revision, 12);
  EXPECT_EQ(pod.end, "");
}

TEST(ReadLauncherPod, OnALostNodeNothingRuns) {
  const LauncherPod pod =
      ReadLauncherPod(Read<kube::Pod>(R"({"spec":{"nodeName":"n"},"status":{"phase":"Running"}})"), false);
  EXPECT_TRUE(pod.has_lost_node);
  EXPECT_FALSE(pod.is_running);
}

TEST(ReadLauncherPod, TellsWhyItFailed) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"status":{"phase":"Failed","containerStatuses":[{"name":"launcher","state":{"terminated":)"
       R"({"exitCode":137,"reason":"OOMKilled"}}}]}})",
       "exit code 137 (OOMKilled)"},
      {R"({"status":{"phase":"Failed","containerStatuses":[{"name":"launcher","state":{"terminated":)"
       R"({"exitCode":1,"reason":"Error","message":"no hosts"}}}]}})",
       "exit code 1: no hosts"},
      {R"({"status":{"phase":"Failed","reason":"Evicted","message":"the node was low on memory"}})",
       "Evicted: the node was low on memory"},
      {R"({"status":{"phase":"Failed"}})", "failed"},
      {R"({"status":{"phase":"Succeeded","containerStatuses":[{"name":"launcher","state":{"terminated":)"
       R"({"exitCode":0,"reason":"Completed"}}}]}})",
       ""},
  };
  for (const auto& [text, failure] : kCases) {
    EXPECT_EQ(ReadLauncherPod(Read<kube::Pod>(text), true).end, failure) << text;
  }
}

TEST(ReadWorkersState, ReadsOurDecisionBack) {
  struct Case {
    const char* rule;
    const char* text;
    int replicas, granted;
    bool is_gated, is_observed;
  };
  const Case kCases[] = {
      {"as we wrote it",
       R"({"metadata":{"generation":3,"annotations":{"ai.centauruscloud.io/granted":"4"}},"spec":{"replicas":6,)"
       R"("template":{"spec":{"schedulingGates":[{"name":"ai.centauruscloud.io/parked"}]}}},)"
       R"("status":{"observedGeneration":3}})",
       6, 4, true, true},
      {"not observed",
       R"({"metadata":{"generation":3,"annotations":{"ai.centauruscloud.io/granted":"6"}},"spec":{"replicas":6},)"
       R"("status":{"observedGeneration":2}})",
       6, 6, false, false},
      {"without the annotation all are granted", R"({"spec":{"replicas":5}})", 5, 5, false, true},
      {"never more than there are",
       R"({"metadata":{"annotations":{"ai.centauruscloud.io/granted":"9"}},"spec":{"replicas":5}})", 5, 5, false, true},
      {"never less than none",
       R"({"metadata":{"annotations":{"ai.centauruscloud.io/granted":"-2"}},"spec":{"replicas":5}})", 5, 0, false,
       true},
      {"a number that fits no int",
       R"({"metadata":{"annotations":{"ai.centauruscloud.io/granted":"4294967297"}},"spec":{"replicas":5}})", 5, 5,
       false, true},
      {"no number", R"({"metadata":{"annotations":{"ai.centauruscloud.io/granted":"x"}},"spec":{"replicas":5}})", 5, 5,
       false, true},
      {"another's gate", R"({"spec":{"replicas":2,"template":{"spec":{"schedulingGates":[{"name":"other"}]}}}})", 2, 2,
       false, true},
  };
  for (const Case& c : kCases) {
    const WorkersState state = ReadWorkersState(Read<kube::StatefulSet>(c.text));
    EXPECT_EQ(state.replicas, c.replicas) << c.rule;
    EXPECT_EQ(state.granted, c.granted) << c.rule;
    EXPECT_EQ(state.is_gated, c.is_gated) << c.rule;
    EXPECT_EQ(state.is_observed, c.is_observed) << c.rule;
  }
}

TEST(ReadWorkersState, RemembersWhatWasGrantedBeforeSomebodyScaledByHand) {
  const auto promised = [](const char* granted, int replicas) {
    return ReadWorkersState(Read<kube::StatefulSet>(R"({"metadata":{"annotations":{"ai.centauruscloud.io/granted":")" +
                                                    std::string(granted) + R"("}},"spec":{"replicas":)" +
                                                    std::to_string(replicas) + "}}"))
        .promised;
  };
  EXPECT_EQ(promised("9", 5), 9);
  EXPECT_EQ(promised("4294967297", 5), 2147483647);
  EXPECT_EQ(promised("-2", 5), 0);
  EXPECT_EQ(promised("x", 5), 5);
}

TEST(Waited, AMomentFarAheadIsLongAgo) {
  const kube::Time now{kube::WallTime(std::chrono::hours(1000))};
  const auto waited = [&](std::chrono::seconds ago) { return Waited(now, kube::Time{now.value - ago}); };
  EXPECT_EQ(waited(std::chrono::seconds(7)), std::chrono::seconds(7));
  EXPECT_EQ(waited(std::chrono::seconds(-30)), std::chrono::seconds(0));  // Two clocks differ a little.
  EXPECT_GE(waited(std::chrono::hours(-1)), std::chrono::hours(24));      // Ours was set back.
}

}  // namespace
}  // namespace grus

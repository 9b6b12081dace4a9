// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/controllers/elastic/view_builder.h"

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

TEST(OrdinalOf, TakesOnlyWorkersOfThatJob) {
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
  bool bound, ready, ending, ended, lost;
};

TEST(ReadWorker, SaysWhatAPodIs) {
  const PodCase kCases[] = {
      {"just created", R"({"metadata":{"name":"p"}})", false, false, false, false, false, false},
      {"gated", R"({"spec":{"schedulingGates":[{"name":"other"}]}})", false, false, false, false, false, false},
      {"bound", R"({"spec":{"nodeName":"n"}})", true, true, false, false, false, false},
      {"ready", R"({"spec":{"nodeName":"n"},"status":{"conditions":[{"type":"Ready","status":"True"}]}})", true, true,
       true, false, false, false},
      {"its node is gone", R"({"spec":{"nodeName":"n"},"status":{"conditions":[{"type":"Ready","status":"True"}]}})",
       false, true, true, false, false, true},
      {"deleted",
       R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"n"},)"
       R"("status":{"conditions":[{"type":"Ready","status":"True"}]}})",
       true, true, false, true, false, false},
      {"failed", R"({"spec":{"nodeName":"n"},"status":{"phase":"Failed"}})", true, true, false, true, true, false},
      {"succeeded", R"({"spec":{"nodeName":"n"},"status":{"phase":"Succeeded"}})", true, true, false, true, true,
       false},
      {"failed and deleted",
       R"({"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"spec":{"nodeName":"n"},)"
       R"("status":{"phase":"Failed"}})",
       true, true, false, true, false, false},
  };
  for (const PodCase& c : kCases) {
    const Worker worker = ReadWorker(Read<kube::Pod>(c.text), 3, c.has_node);
    EXPECT_EQ(worker.ordinal, 3) << c.rule;
    EXPECT_EQ(worker.is_bound, c.bound) << c.rule;
    EXPECT_EQ(worker.is_ready, c.ready) << c.rule;
    EXPECT_EQ(worker.is_ending, c.ending) << c.rule;
    EXPECT_EQ(worker.has_ended, c.ended) << c.rule;
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
  EXPECT_EQ(since(R"({"scheduling.ai.centauruscloud.io/lifted":"2026-01-01T10:30:00Z"})"),
            TimeOf("2026-01-01T10:30:00Z"));
  EXPECT_EQ(since(R"({"scheduling.ai.centauruscloud.io/lifted":"2026-01-01T09:30:00Z"})"),
            TimeOf("2026-01-01T10:00:00Z"));
  EXPECT_EQ(since(R"({"scheduling.ai.centauruscloud.io/lifted":"nonsense"})"), TimeOf("2026-01-01T10:00:00Z"));
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

TEST(ReadLauncherPod, AGateOfAnotherControllerIsItsTrouble) {
  EXPECT_EQ(
      ReadLauncherPod(Read<kube::Pod>(R"({"spec":{"schedulingGates":[{"name":"example.com/a"}]}})"), true).trouble,
      "cannot start before another controller removes its scheduling gate example.com/a");
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

TEST(ReadWorkersState, IsWhatWasGrantedAndAtLeastWhatIsThere) {
  struct Case {
    const char* rule;
    ViewBuilder view;
    int told, granted;
  };
  const Case kCases[] = {
      {"nothing begun", ViewBuilder(), 0, 0},
      {"workers were made before the status was written", ViewBuilder().Waiting({0, 1}), 0, 2},
      {"some are lost, and owed", ViewBuilder().Ready({0, 1}).Lost({2}).Ending({3}), 4, 4},
      {"those that are leaving do not count", ViewBuilder().Ending({0, 1}), 0, 0},
      {"the status was written before workers were dropped", ViewBuilder().Ready({0, 1, 2}), 2, 3},
      {"early workers, which others keep from starting", ViewBuilder().GatedByOthers({0, 1}), 0, 0},
      {"early workers, which others have let go", ViewBuilder().Gated({0, 1}), 0, 0},
      {"the gang has lifted a gate", ViewBuilder().Waiting({0}).Gated({1}), 0, 1},
      {"others have let the first one go, and no gate of ours is there", ViewBuilder().Waiting({0}).GatedByOthers({1}),
       0, 2},
  };
  for (Case c : kCases) {
    View view = c.view.Job([&](auto& job) { job.status.replicas.granted = c.told; }).Build();
    EXPECT_EQ(ReadWorkersState(view).granted, c.granted) << c.rule;
  }
}

TEST(ReadWorkersState, WorkersAreGatedIfOneOfThemWasBornSo) {
  View view = ViewBuilder().Waiting({0, 1}).Build();
  EXPECT_EQ(ReadWorkersState(view).gang, Gang::kNone);
  view.pods[0].gang = Gang::kUngated;
  EXPECT_EQ(ReadWorkersState(view).gang, Gang::kUngated);
  view.pods[1].gang = Gang::kGated;
  EXPECT_EQ(ReadWorkersState(view).gang, Gang::kGated);
  view.pods[1].is_ending = true;
  EXPECT_EQ(ReadWorkersState(view).gang, Gang::kUngated) << "what the next ones are like";
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

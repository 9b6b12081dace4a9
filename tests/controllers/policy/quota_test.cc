// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/quota.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace grus {
namespace {

using kube::Quantity;

Quantity Q(std::string_view text) { return *kube::ParseQuantity(text); }

kube::ResourceList List(std::initializer_list<std::pair<const char*, const char*>> amounts) {
  kube::ResourceList list;
  for (const auto& [name, amount] : amounts) list.emplace_back(name, Q(amount));
  return list;
}

// A worker with a GPU, 2 cores and 8Gi.
kube::Pod Worker() {
  kube::Pod pod;
  kube::Container& container = pod.spec.containers.emplace_back();
  container.name = "worker";
  container.resources.requests = List({{"cpu", "2"}, {"memory", "8Gi"}, {"nvidia.com/gpu", "1"}});
  container.resources.limits = List({{"memory", "8Gi"}, {"nvidia.com/gpu", "1"}});
  return pod;
}

kube::ResourceQuota Quota(const char* resource, const char* hard, const char* used, const char* name = "team") {
  kube::ResourceQuota quota;
  quota.metadata.name = name;
  quota.spec.hard = quota.status.hard = List({{resource, hard}});
  quota.status.used = List({{resource, used}});
  return quota;
}

QuotaList ListOf(std::initializer_list<kube::ResourceQuota> quotas) {
  QuotaList list;
  for (const kube::ResourceQuota& quota : quotas) list.push_back(std::make_shared<const kube::ResourceQuota>(quota));
  return list;
}

QuotaRoom RoomIn(const kube::ResourceQuota& quota, const kube::Pod& pod = Worker()) {
  return QuotaRoomFor(ListOf({quota}), QuotaPodOf(pod), {}, 100);
}

TEST(QuotaRoomFor, CountsWhatIsLeftOfEachResource) {
  struct Case {
    const char *resource, *hard, *used;
    int copies;
  };
  const Case kCases[] = {
      {"requests.nvidia.com/gpu", "8", "5", 3},
      {"requests.nvidia.com/gpu", "8", "8", 0},
      {"requests.nvidia.com/gpu", "8", "9", 0},  // It was lowered.
      {"requests.amd.com/gpu", "0", "0", 100},   // None is asked for.
      {"pods", "10", "8", 2},
      {"count/pods", "10", "9", 1},
      {"cpu", "7", "0", 3},
      {"requests.cpu", "4500m", "500m", 2},
      {"memory", "32Gi", "1Gi", 3},
      {"requests.memory", "32Gi", "0", 4},
      {"limits.memory", "17179869184", "0", 2},
      {"count/secrets", "1", "1", 100},
      {"services", "0", "0", 100},
      {"requests.storage", "0", "0", 100},
      {"requests.ephemeral-storage", "0", "0", 100},  // What is not asked for needs none: only cpu and memory must be.
      {"hugepages-2Mi", "0", "0", 100},
  };
  for (const Case& c : kCases) EXPECT_EQ(RoomIn(Quota(c.resource, c.hard, c.used)).copies, c.copies) << c.resource;
}

TEST(QuotaRoomFor, CountsRareResources) {
  kube::Pod pod = Worker();
  auto& resources = pod.spec.containers[0].resources;
  resources.requests.emplace_back("hugepages-2Mi", Q("64Mi"));
  resources.requests.emplace_back("ephemeral-storage", Q("1Gi"));
  resources.limits.emplace_back("ephemeral-storage", Q("2Gi"));

  EXPECT_EQ(RoomIn(Quota("hugepages-2Mi", "200Mi", "0"), pod).copies, 3);
  EXPECT_EQ(RoomIn(Quota("requests.hugepages-2Mi", "128Mi", "0"), pod).copies, 2);
  EXPECT_EQ(RoomIn(Quota("ephemeral-storage", "5Gi", "1Gi"), pod).copies, 4);
  EXPECT_EQ(RoomIn(Quota("requests.ephemeral-storage", "5Gi", "0"), pod).copies, 5);
  EXPECT_EQ(RoomIn(Quota("limits.ephemeral-storage", "5Gi", "0"), pod).copies, 2);
}

TEST(QuotaRoomFor, SaysWhatLimits) {
  const QuotaRoom room = RoomIn(Quota("requests.nvidia.com/gpu", "8", "7"));

  EXPECT_EQ(room.quota, "team");
  EXPECT_EQ(room.resource, "requests.nvidia.com/gpu");
  EXPECT_EQ(room.why, "requests.nvidia.com/gpu: 7 of 8 used");
  EXPECT_EQ(RoomIn(Quota("pods", "1000", "0")).quota, "");
}

TEST(QuotaRoomFor, TheScarcestQuotaLimits) {
  const QuotaList quotas = ListOf({Quota("pods", "10", "2", "a"), Quota("requests.nvidia.com/gpu", "4", "1", "b"),
                                   Quota("requests.cpu", "6", "0", "c"), Quota("requests.memory", "1Ti", "0", "d")});

  const QuotaRoom room = QuotaRoomFor(quotas, QuotaPodOf(Worker()), {}, 100);

  EXPECT_EQ(room.copies, 3);
  EXPECT_EQ(room.quota, "b");
}

TEST(QuotaRoomFor, SidecarsOverheadAndThePodAsAWholeCount) {
  kube::Pod pod = Worker();
  kube::Container& init = pod.spec.init_containers.emplace_back();
  init.resources.requests = List({{"cpu", "3"}, {"memory", "1Gi"}});
  EXPECT_EQ(RoomIn(Quota("requests.cpu", "6", "0"), pod).copies, 2);  // It runs before the worker.
  init.restart_policy = "Always";
  EXPECT_EQ(RoomIn(Quota("requests.cpu", "10", "0"), pod).copies, 2);
  pod.spec.overhead = List({{"cpu", "1"}, {"memory", "1Gi"}});
  EXPECT_EQ(RoomIn(Quota("requests.cpu", "6", "0"), pod).copies, 1);
  EXPECT_EQ(RoomIn(Quota("requests.memory", "20Gi", "0"), pod).copies, 2);
  pod.spec.resources.emplace().requests = List({{"cpu", "4"}});
  EXPECT_EQ(RoomIn(Quota("requests.cpu", "10", "0"), pod).copies, 2);
}

TEST(QuotaRoomFor, PodsToComeAreServedFirst) {
  kube::Pod launcher;
  launcher.spec.containers.emplace_back().resources.requests = List({{"cpu", "1"}, {"memory", "1Gi"}});
  const QuotaPod first = QuotaPodOf(launcher), worker = QuotaPodOf(Worker());
  const auto room = [&](const kube::ResourceQuota& quota, int others) {
    return QuotaRoomFor(ListOf({quota}), worker, {{&first, 1}, {&worker, others}}, 100);
  };

  EXPECT_EQ(room(Quota("pods", "10", "2"), 3).copies, 4);
  EXPECT_EQ(room(Quota("pods", "10", "2"), 3).why, "pods: 2 of 10 used, 4 for other pods on their way");
  EXPECT_EQ(room(Quota("requests.cpu", "10", "0"), 1).copies, 3);
  EXPECT_EQ(room(Quota("requests.nvidia.com/gpu", "2", "0"), 1).copies, 1);  // The launcher asks for none.
  EXPECT_EQ(room(Quota("pods", "3", "2"), 3).copies, 0);
}

TEST(QuotaRoomFor, PodsMustStateCpuAndMemoryThatAreLimited) {
  kube::Pod pod = Worker();
  pod.spec.init_containers.emplace_back().name = "init";
  struct Case {
    const char* resource;
    const char* why;
  };
  const Case kCases[] = {{"limits.cpu", "container worker must state limits.cpu"},
                         {"limits.memory", "container init must state limits.memory"},
                         {"requests.cpu", "container init must state requests.cpu"},
                         {"memory", "container init must state memory"}};
  for (const Case& c : kCases) {
    const QuotaRoom room = RoomIn(Quota(c.resource, "1000", "0"), pod);
    EXPECT_EQ(room.copies, 0) << c.resource;
    EXPECT_TRUE(room.is_unstated) << c.resource;
    EXPECT_EQ(room.why, c.why);
  }
  EXPECT_EQ(RoomIn(Quota("limits.ephemeral-storage", "1", "0"), pod).copies, 100);
  pod.spec.resources.emplace().limits = List({{"cpu", "4"}});
  EXPECT_EQ(RoomIn(Quota("limits.cpu", "9", "0"), pod).copies, 2);
}

TEST(QuotaRoomFor, AdmitsNoneWhileNothingIsCounted) {
  kube::ResourceQuota quota = Quota("pods", "10", "0");
  quota.status.used.clear();
  const QuotaRoom room = RoomIn(quota);
  EXPECT_EQ(room.copies, 0);
  EXPECT_EQ(room.why, "pods: the quota controller has not counted its use yet");
  EXPECT_FALSE(room.is_unstated);

  quota.status.hard.clear();  // Its controller has not seen it at all: nor does admission.
  EXPECT_EQ(RoomIn(quota).copies, 100);
}

TEST(QuotaRoomFor, LooksAtThePodsOfItsScope) {
  const auto plain = [] {
    kube::Pod pod;
    pod.spec.containers.emplace_back().name = "c";
    return pod;
  };
  const auto of_class = [](const char* name) {
    kube::Pod pod = Worker();
    pod.spec.priority_class_name = name;
    return pod;
  };
  kube::Pod with_deadline = Worker();
  with_deadline.spec.active_deadline_seconds = 60;
  kube::Pod crossing = Worker();
  crossing.spec.affinity.emplace().pod_anti.emplace().required.emplace_back().namespaces = {"other"};
  struct Case {
    kube::ScopeRequirement scope;
    kube::Pod in, out;
  };
  const Case kCases[] = {
      {{"BestEffort", "Exists", {}}, plain(), Worker()},
      {{"NotBestEffort", "Exists", {}}, Worker(), plain()},
      {{"Terminating", "Exists", {}}, with_deadline, Worker()},
      {{"NotTerminating", "Exists", {}}, Worker(), with_deadline},
      {{"CrossNamespacePodAffinity", "Exists", {}}, crossing, Worker()},
      {{"PriorityClass", "Exists", {}}, of_class("high"), Worker()},
      {{"PriorityClass", "DoesNotExist", {}}, Worker(), of_class("high")},
      {{"PriorityClass", "In", {"high", "top"}}, of_class("top"), of_class("low")},
      {{"PriorityClass", "In", {"high"}}, of_class("high"), Worker()},
      {{"PriorityClass", "NotIn", {"high"}}, of_class("low"), of_class("high")},
      {{"PriorityClass", "NotIn", {"high"}}, Worker(), of_class("high")},
  };
  for (const Case& c : kCases) {
    kube::ResourceQuota quota = Quota("pods", "2", "2");
    quota.spec.scope_selector.emplace().match_expressions = {c.scope};
    EXPECT_EQ(RoomIn(quota, c.in).copies, 0) << c.scope.scope_name << " " << c.scope.op;
    EXPECT_EQ(RoomIn(quota, c.out).copies, 100) << c.scope.scope_name << " " << c.scope.op;
    if (c.scope.op != "Exists") continue;
    quota.spec.scope_selector.reset();
    quota.spec.scopes = {std::string(c.scope.scope_name)};
    EXPECT_EQ(RoomIn(quota, c.in).copies, 0) << c.scope.scope_name;
    EXPECT_EQ(RoomIn(quota, c.out).copies, 100) << c.scope.scope_name;
  }
}

TEST(QuotaRoomFor, APodIsInAllScopesOrNone) {
  kube::ResourceQuota quota = Quota("pods", "2", "2");
  quota.spec.scopes = {"NotBestEffort", "Terminating"};

  EXPECT_EQ(RoomIn(quota).copies, 100);
  quota.spec.scopes = {"NotBestEffort", "NotTerminating"};
  EXPECT_EQ(RoomIn(quota).copies, 0);
}

TEST(QuotaRoomFor, OthersOfAnotherScopeTakeNothing) {
  kube::ResourceQuota quota = Quota("pods", "4", "2");
  quota.spec.scopes = {"NotBestEffort"};
  kube::Pod plain;
  plain.spec.containers.emplace_back().name = "c";
  const QuotaPod other = QuotaPodOf(plain);

  EXPECT_EQ(QuotaRoomFor(ListOf({quota}), QuotaPodOf(Worker()), {{&other, 9}}, 100).copies, 2);
}

TEST(QuotaRoomFor, StopsAtWhatNumbersHold) {
  kube::Pod pod = Worker();
  pod.spec.containers[0].resources.requests = List({{"cpu", "9E"}, {"memory", "9E"}});
  const QuotaPod worker = QuotaPodOf(pod);

  EXPECT_EQ(QuotaRoomFor(ListOf({Quota("requests.memory", "9E", "9E")}), worker, {{&worker, 1 << 30}}, 9).copies, 0);
  EXPECT_EQ(QuotaRoomFor(ListOf({Quota("requests.memory", "9E", "0")}), worker, {}, 9).copies, 1);
}

TEST(MayAdmitMore, IsWhatFallsRisesOrGoes) {
  struct Case {
    const char* rule;
    void (*change)(kube::ResourceQuota&);
    bool may;
  };
  const Case kCases[] = {
      {"the same", [](kube::ResourceQuota&) {}, false},
      {"a pod was made",
       [](kube::ResourceQuota& q) {
         q.status.used = List({{"pods", "3"}});
       },
       false},
      {"a pod is gone",
       [](kube::ResourceQuota& q) {
         q.status.used = List({{"pods", "1"}});
       },
       true},
      {"lowered",
       [](kube::ResourceQuota& q) {
         q.status.hard = List({{"pods", "2"}});
       },
       false},
      {"raised",
       [](kube::ResourceQuota& q) {
         q.status.hard = List({{"pods", "5"}});
       },
       true},
      {"raised, and not yet in force",
       [](kube::ResourceQuota& q) {
         q.spec.hard = List({{"pods", "5"}});
       },
       false},
      {"of another resource now",
       [](kube::ResourceQuota& q) {
         q.status.hard = List({{"cpu", "5"}});
       },
       true},
      {"one more resource", [](kube::ResourceQuota& q) { q.status.hard.emplace_back("cpu", Q("5")); }, false},
      {"that one is counted", [](kube::ResourceQuota& q) { q.status.used.emplace_back("cpu", Q("5")); }, true},
      {"of other pods now", [](kube::ResourceQuota& q) { q.spec.scopes = {"BestEffort"}; }, true},
  };
  const kube::ResourceQuota before = Quota("pods", "4", "2");
  for (const Case& c : kCases) {
    kube::ResourceQuota after = before;
    c.change(after);
    EXPECT_EQ(MayAdmitMore(&before, &after), c.may) << c.rule;
  }
  EXPECT_TRUE(MayAdmitMore(&before, nullptr));
  EXPECT_FALSE(MayAdmitMore(nullptr, &before));
}

}  // namespace
}  // namespace grus

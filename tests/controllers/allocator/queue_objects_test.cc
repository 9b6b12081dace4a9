// SPDX-License-Identifier: Apache-2.0
#include "controllers/allocator/queue_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/kit/must.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::shared_ptr<api::GpuQueue> Queue(const std::string& name, const std::string& spec) {
  return kit::Must(kube::Decode<api::GpuQueue>(R"({"metadata":{"name":")" + name + R"("},"spec":)" + spec + "}"));
}
std::shared_ptr<api::NodePool> Pool(const std::string& name, const std::string& created, const std::string& more = "") {
  return kit::Must(kube::Decode<api::NodePool>(R"({"metadata":{"name":")" + name + R"(","creationTimestamp":")" +
                                               created + "\"" + more + R"(},"spec":{"nodeSelector":{"gpu":")" + name +
                                               R"("},"resource":"amd.com/gpu"}})"));
}
std::shared_ptr<kube::Namespace> Namespace(const std::string& name, const std::string& labels) {
  return kit::Must(kube::Decode<kube::Namespace>(R"({"metadata":{"name":")" + name + R"(","labels":)" + labels + "}}"));
}

TEST(ReadQueues, OfSeveralPoolsTheOldestComesFirst) {
  const auto declared =
      ReadQueues({},
                 {Pool("young", "2027-01-02T00:00:00Z"), Pool("b", "2027-01-01T00:00:00Z"),
                  Pool("a", "2027-01-01T00:00:00Z", R"(,"deletionTimestamp":"2027-01-03T00:00:00Z")")},
                 {});
  EXPECT_THAT(declared.setup.pools,
              ElementsAre(PoolSpec{"a", {{"gpu", "a"}}, "amd.com/gpu"}, PoolSpec{"b", {{"gpu", "b"}}, "amd.com/gpu"},
                          PoolSpec{"young", {{"gpu", "young"}}, "amd.com/gpu"}))
      << "one that is being deleted counts until it is gone";
}

TEST(ReadQueues, APoolSaysHowItIsFilled) {
  const auto spread = Pool("a", "2027-01-01T00:00:00Z");
  spread->spec.placement = api::PoolPlacement::kSpread;
  const auto declared = ReadQueues({}, {spread, Pool("b", "2027-01-02T00:00:00Z")}, {});
  EXPECT_EQ(declared.setup.pools[0].placement, PoolPlacement::kSpread);
  EXPECT_EQ(declared.setup.pools[1].placement, PoolPlacement::kBinPack);
}

TEST(ReadQueues, AllFieldsOfAQueueCount) {
  const auto declared = ReadQueues({Queue("vision", R"({"parent":"org","namespaceSelector":{"matchLabels":{"team":"v"}},
          "quotas":[{"pool":"a","guaranteed":16,"limit":32,"lendable":8,"weight":2},{"pool":"b"}],
          "order":"StrictFifo","reclaim":"LowerPriority","stop":"Drain","minimumRuntimeSeconds":600,"maximumRuntimeSeconds":86400,
          "preemptionDelaySeconds":120,"preemptionNoticeSeconds":45})")},
                                   {}, {});
  EXPECT_THAT(declared.setup.queues,
              ElementsAre(QueueSpec{.name = "vision",
                                    .parent = "org",
                                    .quotas = {{"a", 16 * kOneGpu, 32 * kOneGpu, 8 * kOneGpu, 2}, {.pool = "b"}},
                                    .selects_namespaces = true,
                                    .order = QueueOrder::kStrictFifo,
                                    .reclaim = ReclaimPolicy::kLowerPriority,
                                    .stop = QueueStop::kDrain,
                                    .minimum_runtime_seconds = 600,
                                    .maximum_runtime_seconds = 86400,
                                    .preemption_notice_seconds = 45,
                                    .preemption_delay_seconds = 120}));
}

TEST(ReadQueues, ANamespaceIsInTheQueuesWhoseSelectorsMatchItsLabels) {
  const auto declared =
      ReadQueues({Queue("v", R"({"namespaceSelector":{"matchLabels":{"team":"v"}}})"),
                  Queue("open", "{}"),  // It selects nothing, and not everything.
                  Queue("any", R"({"namespaceSelector":{"matchExpressions":[{"key":"team","operator":"Exists"}]}})")},
                 {},
                 {Namespace("v-train", R"({"team":"v"})"), Namespace("s-train", R"({"team":"s"})"),
                  Namespace("kube-system", "{}")});
  EXPECT_THAT(declared.setup.namespaces,
              ElementsAre(SelectedNamespace{"s-train", {"any"}}, SelectedNamespace{"v-train", {"any", "v"}}));
}

// The CRD refuses the first four; an older CRD did not.
TEST(ReadQueues, ASelectorThatCannotBeEvaluatedSelectsNothingAndIsAFault) {
  struct Case {
    const char *selector, *field, *message;
  };
  for (const Case& c : {
           Case{R"({"matchExpressions":[{"key":"a","operator":"Exists"},{"key":"a","operator":"In"}]})",
                "spec.namespaceSelector.matchExpressions[1]", "operator In needs values: add them"},
           Case{R"({"matchExpressions":[{"key":"a","operator":"NotIn","values":[]}]})",
                "spec.namespaceSelector.matchExpressions[0]", "operator NotIn needs values: add them"},
           Case{R"({"matchExpressions":[{"key":"a","operator":"DoesNotExist","values":["b"]}]})",
                "spec.namespaceSelector.matchExpressions[0]", "operator DoesNotExist takes no values: remove them"},
           Case{R"({"matchExpressions":[{"key":"team a","operator":"DoesNotExist"}]})",
                "spec.namespaceSelector.matchExpressions[0]", "the key \"team a\": correct it"},
           Case{R"({"matchLabels":{"-a/b":"v"}})", "spec.namespaceSelector.matchLabels", "the key \"-a/b\""},
           Case{R"({"matchLabels":{"a":"b c"}})", "spec.namespaceSelector.matchLabels", "the value \"b c\""},
           Case{R"({"matchExpressions":[{"key":"a","operator":"NotIn","values":["b","c/d"]}]})",
                "spec.namespaceSelector.matchExpressions[0]", "the value \"c/d\": correct it"},
       }) {
    const auto declared = ReadQueues({Queue("q", R"({"namespaceSelector":)" + std::string(c.selector) + "}")}, {},
                                     {Namespace("team-a", R"({"a":"b"})")});
    EXPECT_THAT(declared.setup.namespaces, IsEmpty()) << c.selector;
    EXPECT_TRUE(declared.setup.queues.at(0).selects_namespaces) << "jobs of any namespace could name it";
    ASSERT_EQ(declared.faults.size(), 1U) << c.selector;
    EXPECT_EQ(declared.faults[0].field, c.field);
    EXPECT_EQ(declared.faults[0].kind, QueueFaultKind::kInvalidSelector);
    EXPECT_THAT(declared.faults[0].message, HasSubstr(c.message));
  }
}

TEST(ReadQueues, SelectorsThatLabelsCanMatchAreNoFaults) {
  const auto declared =
      ReadQueues({Queue("q", R"({"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"team-a","a":""},
          "matchExpressions":[{"key":"b","operator":"In","values":["1","x_y.z"]},{"key":"c","operator":"Exists"}]}})")},
                 {}, {});
  EXPECT_THAT(declared.faults, IsEmpty());
}

}  // namespace
}  // namespace grus

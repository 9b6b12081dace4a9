// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/queue_choice.h"

#include <gtest/gtest.h>

#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

QueueTree Tree() {
  std::vector<QueueSpec> specs = {{.name = "research"},
                                  {.name = "vision", .parent = "research"},
                                  {.name = "speech", .parent = "research"},
                                  {.name = "open"}};
  for (QueueSpec& spec : specs) spec.selects_namespaces = spec.name != "open";
  return TreeOf(specs, 8);
}

TEST(QueueOf, TakesTheNameThenTheSelectorThenTheDefault) {
  const QueueTree tree = Tree();
  struct Case {
    const char* what;
    QueueWish wish;
    const char* queue;
  };
  for (const Case& c : {
           Case{"nothing", {}, "default"},
           Case{"a selector", {.selected_by = {"vision"}}, "vision"},
           Case{"a name before a selector", {.queue_name = "speech", .selected_by = {"vision", "speech"}}, "speech"},
           Case{"a name of a queue for everybody", {.queue_name = "open", .selected_by = {"vision"}}, "open"},
           Case{"of parent and child the child", {.selected_by = {"research", "vision"}}, "vision"},
           Case{"only the parent", {.selected_by = {"research"}}, "research"},
           Case{"a selector of a queue that is gone", {.selected_by = {"gone"}}, "default"},
       }) {
    const auto queue = QueueOf(tree, c.wish);
    ASSERT_TRUE(queue.ok()) << c.what;
    EXPECT_EQ(tree.NameOf(*queue), c.queue) << c.what;
  }
}

TEST(QueueOf, SaysWhyAJobIsInNoQueue) {
  const QueueTree tree = Tree();
  struct Case {
    QueueWish wish;
    const char* message;
  };
  for (const Case& c : {
           Case{{.queue_name = "gone", .ns = "team-a"}, "there is no queue gone: create it, or change queueName"},
           Case{{.queue_name = "vision", .ns = "team-a"},
                "the queue vision is not for namespace team-a: change queueName, or the queue's namespaceSelector"},
           Case{{.ns = "team-a", .selected_by = {"vision", "speech", "research"}},
                "the queues speech and vision select namespace team-a: set queueName to one of them, or change "
                "their namespaceSelectors"},
       }) {
    const auto queue = QueueOf(tree, c.wish);
    ASSERT_FALSE(queue.ok()) << c.message;
    EXPECT_EQ(queue.error().message(), c.message);
  }
}

TEST(NamespacesInTwoQueues, AreFaultsOfAllOfThem) {
  const QueueTree tree = Tree();
  const std::vector<QueueFault> faults = NamespacesInTwoQueues(
      tree, {{"a", {"vision", "speech"}}, {"b", {"vision"}}, {"c", {}}, {"d", {"vision", "research"}}});

  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].queue, "speech");
  EXPECT_EQ(faults[1].queue, "vision");
  EXPECT_EQ(faults[1].field, "spec.namespaceSelector");
  EXPECT_EQ(faults[1].message,
            "namespace a is also selected by speech: change one selector; until then its jobs that name no queue wait");
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/awaited_victims.h"

#include <gtest/gtest.h>

#include "tests/kit/manual_clock.h"

namespace grus {
namespace {

kube::Pod PodOf(const std::string& uid, const std::string& nominated = {}) {
  kube::Pod pod;
  pod.metadata.uid = uid;
  pod.status.nominated_node_name = nominated;
  return pod;
}

bool Enough(const std::string&, const std::vector<std::string>&) { return true; }

std::map<std::string, PreemptCall::Victims> Victims(const std::string& node, std::size_t count) {
  return {{node, {.uids = std::vector<std::string>(count, "v")}}};
}

TEST(AwaitedVictims, ThoseOfAnotherNodeOrPodAreNotAwaited) {
  kube::testing::ManualClock clock;
  AwaitedVictims awaited(clock);
  awaited.Note(PodOf("p"), Victims("a", 1));
  EXPECT_TRUE(awaited.AreEnough(PodOf("p", "a"), Enough));
  EXPECT_FALSE(awaited.AreEnough(PodOf("p", "b"), Enough));
  EXPECT_FALSE(awaited.AreEnough(PodOf("q", "a"), Enough));
}

TEST(AwaitedVictims, WhoIsForgottenAwaitsNobody) {
  kube::testing::ManualClock clock;
  AwaitedVictims awaited(clock);
  awaited.Note(PodOf("p"), Victims("a", 1));
  awaited.Forget(PodOf("p"));
  EXPECT_FALSE(awaited.AreEnough(PodOf("p", "a"), Enough));
  awaited.Note(PodOf("p"), Victims("a", 1));
  awaited.Note(PodOf("p"), {});
  EXPECT_FALSE(awaited.AreEnough(PodOf("p", "a"), Enough)) << "the last answer counts";
}

// Rule: what a caller sends does not fill the memory.
TEST(AwaitedVictims, OfVeryManyTheOldestAreForgotten) {
  kube::testing::ManualClock clock;
  AwaitedVictims awaited(clock);
  for (const char* pod : {"p", "q", "r"}) awaited.Note(PodOf(pod), Victims("a", 20'000));
  EXPECT_FALSE(awaited.AreEnough(PodOf("p", "a"), Enough));
  EXPECT_TRUE(awaited.AreEnough(PodOf("q", "a"), Enough));
  EXPECT_TRUE(awaited.AreEnough(PodOf("r", "a"), Enough));
  awaited.Note(PodOf("s"), Victims("a", 50'001));
  EXPECT_FALSE(awaited.AreEnough(PodOf("s", "a"), Enough));
  EXPECT_TRUE(awaited.AreEnough(PodOf("r", "a"), Enough)) << "one alone does not drive out the others";
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// What holds of the planner over any history. A small cluster is played second by second; the seed is printed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "tests/kit/shapes.h"

namespace grus {
namespace {

class Play {
 public:
  explicit Play(unsigned seed, int nodes, std::int64_t reserve_after = 60)
      : planner_(ledger_, reserve_after), random_(seed) {
    PutNodes(ledger_, nodes);
  }

  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  std::int64_t now() const { return now_; }

  // It runs for `seconds` once it is placed; whether the planner is told is another matter.
  void Add(GangDemand gang, std::int64_t seconds, bool is_told) {
    gang.waiting_since = now_;
    if (is_told) gang.runtime_seconds = seconds;
    seconds_[gang.key] = seconds;
    planner_.Put(gang);
    gangs_[gang.key] = std::move(gang);
  }

  // One second: what is over ends, what fits is placed, what is placed is bound.
  void Step() {
    ++now_;
    for (auto it = running_.begin(); it != running_.end();) {
      if (it->second > now_) {
        ++it;
        continue;
      }
      for (const std::string& pod : pods_[it->first]) ledger_.Release(pod);
      planner_.SetEnd(it->first, std::nullopt);
      it = running_.erase(it);
    }
    for (const std::string& key : planner_.Plan(now_)) {
      const GangStanding* standing = planner_.StandingOf(key);
      if (!standing || !standing->is_placed) continue;
      started.insert(key);
      CheckNodes();
      const std::vector<Place> places = ledger_.PlacesOf(key);
      EXPECT_GE(static_cast<int>(places.size()), gangs_[key].needed);
      for (const Place& place : places) {
        pods_[key].push_back(key + "-" + std::to_string(pods_[key].size()));
        ledger_.Bind(pods_[key].back(), place.node, place.shape->request, key);
      }
      EXPECT_TRUE(ledger_.PlacesOf(key).empty());
      running_[key] = now_ + seconds_[key];
      planner_.Remove(key);
    }
    CheckNodes();
  }

  const GangStanding* StandingOf(const std::string& key) const { return planner_.StandingOf(key); }
  std::size_t waiting() const { return planner_.waiting(); }

  std::set<std::string> started;

 private:
  void CheckNodes() {
    for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
      const LedgerNode& node = *ledger_.NodeAt(id);
      ASSERT_LE(node.used.Extended(kGpuResource), node.state.allocatable.Extended(kGpuResource)) << node.state.name;
      ASSERT_GE(node.used.Extended(kGpuResource), 0) << node.state.name;
    }
  }

  ClusterLedger ledger_;
  GangPlanner planner_;
  std::mt19937 random_;
  std::int64_t now_ = 1000;
  std::map<std::string, GangDemand> gangs_;
  std::map<std::string, std::int64_t> seconds_, running_;
  std::map<std::string, std::vector<std::string>> pods_;
};

// Gangs that fit one at a time all run, none holds half of what it needs, and no node is ever over-committed.
TEST(GangPlannerOverAnyHistory, AllGangsThatFitAloneRunAndNoNodeIsOverCommitted) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Play play(seed, 4, 20);
    for (int i = 0; i < 40; ++i) {
      const int gpus = 1 << play.Below(4);
      GangDemand gang = Gang(std::string("t/g").append(std::to_string(i)), 1 + play.Below(4 * 8 / gpus), gpus);
      if (play.Below(3) == 0) gang.needed = 1 + play.Below(gang.needed);
      if (play.Below(4) == 0 && gang.members.size() * static_cast<unsigned>(gpus) < 24) {
        gang.members.push_back(Shared(GpuPod(1)));
      }
      gang.priority = play.Below(2);
      play.Add(std::move(gang), 1 + play.Below(100), play.Below(2) == 0);
      for (int j = play.Below(20); j > 0; --j) play.Step();
    }
    for (int i = 0; i < 5000 && play.waiting() > 0; ++i) play.Step();
    EXPECT_EQ(play.waiting(), 0U);
    EXPECT_EQ(play.started.size(), 40U);
  }
}

// A stream of small jobs that nearly fills the cluster of six nodes: 2.5 GPUs for 110 s, every seven seconds or so.
void Stream(Play& play, int& next, bool is_told) {
  if (play.Below(7) == 0) {
    GangDemand small = Gang(std::string("t/s").append(std::to_string(next++)), 1, 1 + play.Below(4));
    play.Add(std::move(small), 20 + play.Below(180), is_told);
  }
  play.Step();
}

TEST(GangPlannerOverAnyHistory, AStreamOfSmallJobsDoesNotStarveALargeGang) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Play play(seed, 6);
    int next = 0;
    for (int i = 0; i < 400; ++i) Stream(play, next, false);
    play.Add(Gang("t/large", 5, 8), 10, false);
    const std::int64_t since = play.now();
    while (!play.started.contains("t/large") && play.now() < since + 2000) Stream(play, next, false);
    // 60 s until it may reserve, 200 s for the longest job that is there then; some small ones may wait before it.
    EXPECT_LE(play.now() - since, 60 + 200 + 200);
  }
}

// Jobs that say when they end may pass the gang with the reservation, but never delay it.
TEST(GangPlannerOverAnyHistory, BackfillDoesNotDelayTheExpectedStart) {
  int filled_in = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Play play(seed, 6);
    int next = 0;
    for (int i = 0; i < 400; ++i) Stream(play, next, true);
    play.Add(Gang("t/large", 6, 8), 10, true);
    std::optional<std::int64_t> promised;
    const std::int64_t since = play.now();
    while (!play.started.contains("t/large") && play.now() < since + 2000) {
      const std::size_t started = play.started.size();
      Stream(play, next, true);
      const GangStanding* standing = play.StandingOf("t/large");
      if (!standing || !standing->has_reservation) continue;
      ASSERT_TRUE(standing->expected_start);
      if (promised) filled_in += static_cast<int>(play.started.size() - started);
      promised = std::min(promised.value_or(*standing->expected_start), *standing->expected_start);
    }
    ASSERT_TRUE(play.started.contains("t/large"));
    EXPECT_LE(play.now(), promised.value_or(play.now()));
  }
  EXPECT_GT(filled_in, 50) << "all nodes are reserved: these passed it";
}

// Whether members of `sizes` GPUs, from `next` on, can be on nodes with so many free: tries all.
bool FitsSomehow(std::vector<int>& free, const std::vector<int>& sizes, std::size_t next = 0) {
  if (next == sizes.size()) return true;
  for (int& node : free) {
    if (node < sizes[next]) continue;
    node -= sizes[next];
    const bool fits = FitsSomehow(free, sizes, next + 1);
    node += sizes[next];
    if (fits) return true;
  }
  return false;
}

TEST(GangPlannerProperty, NeverIsSaidOfTwoKindsExactlyIfNoWayIsLeft) {
  std::mt19937 random(7);
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  int never = 0;
  for (int i = 0; i < 3000; ++i) {
    ClusterLedger ledger;
    std::vector<int> free;
    std::string text;
    for (int node = between(1, 3); node > 0; --node) {
      free.push_back(between(4, 9));
      text += "node " + std::to_string(free.back()) + " ";
      ledger.PutNode(GpuNode(std::string(1, static_cast<char>('a' + node)), free.back()));
    }
    const int large = between(2, 6), small = between(1, large);
    GangDemand gang = Gang("t/g", between(1, 3), large);
    std::vector<int> sizes(gang.members.size(), large);
    sizes.resize(sizes.size() + static_cast<std::size_t>(between(1, 5)), small);
    gang.members.resize(sizes.size(), Shared(GpuPod(small)));
    gang.needed = static_cast<int>(sizes.size());
    for (const int size : sizes) text += std::to_string(size) + " ";
    GangPlanner planner(ledger);
    planner.Put(gang);
    planner.Plan(1);
    const GangStanding& standing = *planner.StandingOf("t/g");
    const bool can_fit = FitsSomehow(free, sizes);
    EXPECT_EQ(standing.can_never_fit, !can_fit) << text;
    never += standing.can_never_fit ? 1 : 0;
  }
  EXPECT_GT(never, 300);
  EXPECT_LT(never, 2700);
}

}  // namespace
}  // namespace grus

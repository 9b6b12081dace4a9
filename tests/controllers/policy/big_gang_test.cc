// SPDX-License-Identifier: Apache-2.0
// A large gang among small ones of several queues, which want more than the cluster has. Played second by second.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/controllers/policy/queued_gangs_fixture.h"

namespace grus {
namespace {

class BigGang : public QueuedGangs, public ::testing::WithParamInterface<unsigned> {
 protected:
  void Step() {
    ++now_;
    for (auto it = running_.begin(); it != running_.end() && it->first <= now_; it = running_.erase(it)) {
      const std::string& key = it->second;
      for (const std::string& pod : pods_[key]) ledger_.Release(pod);
      queues_.RemoveHolder(key);
    }
    for (const std::string& key : planner_.Plan(now_)) {
      const std::vector<Place> places = ledger_.PlacesOf(key);
      if (places.empty()) continue;
      for (const Place& place : places) {
        pods_[key].push_back(key + "-" + std::to_string(pods_[key].size()));
        ledger_.Bind(pods_[key].back(), place.node, place.shape->request, key);
      }
      Holder holder = queues_.HolderOf(key);
      holder.workers = holder.min_workers = static_cast<int>(places.size());
      queues_.PutHolder(key, holder);
      running_.emplace(now_ + seconds_[key], key);
      started_[key] = now_;
      planner_.Remove(key);
    }
  }
  void Add(const std::string& key, int members, int gpus, int seconds) {
    queues_.PutHolder(key, {.comes_back = true});
    GangDemand gang = Gang(key, members, gpus);
    gang.waiting_since = now_;
    seconds_[key] = seconds;
    planner_.Put(std::move(gang));
  }

  std::int64_t now_ = 1000;
  std::map<std::string, int> seconds_;
  std::map<std::string, std::vector<std::string>> pods_;
  std::multimap<std::int64_t, std::string> running_;
  std::map<std::string, std::int64_t> started_;
};

// Small jobs run 8 to 16 s, and a gang that waits for 15 s may reserve. Its queue has its guarantee without it, so it
// can start only once others of its queue have ended, and nobody takes their place.
TEST_P(BigGang, StartsAmongSmallOnesWithinTheTimeThatTheseTake) {
  for (int node = 0; node < 16; ++node) ledger_.PutNode(GpuNode("node-" + std::to_string(node), 8));
  SetUpQueues({Team("vision", 64), Team("speech", 32), Team("lab", 32)});
  std::mt19937 random(GetParam());
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const char* const teams[] = {"vision", "speech", "lab", "vision"};
  const std::string big = "vision/big";
  double work = 0;
  int jobs = 0;
  for (int second = 0; second < 120; ++second) {
    while (work < 1.2 * 128 * second) {
      const int members = 1 + below(4), seconds = 8 + below(9);
      Add(std::string(teams[below(4)]) + "/" + std::to_string(jobs++), members, 1, seconds);
      work += members * seconds;
    }
    if (second == 20) Add(big, 4, 8, 20);
    Step();
  }
  ASSERT_TRUE(started_.contains(big));
  EXPECT_LE(started_[big], 1020 + 15 + 2 * 16);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BigGang, ::testing::Range(1U, 9U));

}  // namespace
}  // namespace grus

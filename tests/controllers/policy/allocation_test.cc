// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/allocation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "controllers/policy/size_ladder.h"

namespace grus {
namespace {

constexpr double kHour = 3600;

std::vector<PoolNode> Nodes(int count, int gpus) {
  std::vector<PoolNode> nodes;
  for (int i = 0; i < count; ++i) nodes.push_back({"node-" + std::to_string(i), gpus});
  return nodes;
}

// Speed grows as gpus^exponent.
std::vector<SpeedPoint> Curve(double exponent, int most = 64) {
  std::vector<SpeedPoint> curve;
  for (int gpus = 1; gpus <= most; ++gpus) {
    const double speed = std::pow(gpus, exponent);
    curve.push_back({gpus, speed, speed, speed});
  }
  return curve;
}

std::vector<SpeedPoint> Curve(const std::map<int, double>& speeds) {
  std::vector<SpeedPoint> curve;
  for (const auto& [gpus, speed] : speeds) curve.push_back({gpus, speed, speed, speed});
  return curve;
}

// A job that waits, is new, and scales well.
PoolJob Job(std::string key, int min, int max) {
  PoolJob job;
  job.key = std::move(key);
  job.min_workers = min;
  job.max_workers = max;
  job.curve = Curve(0.9);
  return job;
}

// The same, and it has run there for so long that a resize is cheap.
PoolJob Running(std::string key, int min, int max, std::vector<NodeWorkers> places) {
  PoolJob job = Job(std::move(key), min, max);
  job.places = std::move(places);
  job.age_seconds = 10 * kHour;
  job.attained_gpu_seconds = kHour;
  job.resize_cost_seconds = 30;
  return job;
}

std::map<std::string, int> Sizes(const std::vector<Grant>& plan) {
  std::map<std::string, int> sizes;
  for (const Grant& grant : plan) sizes[std::string(grant.job)] = grant.to;
  return sizes;
}

int CountOf(const std::vector<Grant>& plan, GrantReason reason) {
  return static_cast<int>(
      std::count_if(plan.begin(), plan.end(), [&](const Grant& grant) { return grant.reason == reason; }));
}

// What holds for every plan: no GPU twice, nobody below its minimum or at a size that is not legal.
void ExpectPossible(const AllocationSnapshot& snapshot, const std::vector<Grant>& plan) {
  ASSERT_EQ(plan.size(), snapshot.jobs.size());
  std::vector<int> free;
  for (const PoolNode& node : snapshot.nodes) free.push_back(node.gpus);
  const int node_gpus = free.empty() ? 0 : *std::max_element(free.begin(), free.end());
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const PoolJob& job = snapshot.jobs[i];
    EXPECT_EQ(plan[i].job, job.key);
    int placed = 0;
    for (const NodeWorkers& place : plan[i].places) {
      placed += place.workers;
      free.at(place.node) -= place.workers * job.gpus_per_worker;
    }
    EXPECT_EQ(placed, plan[i].to) << job.key;
    if (placed == 0) continue;
    EXPECT_GE(placed, job.min_workers) << job.key;
    EXPECT_LE(placed, job.max_workers) << job.key;
    EXPECT_EQ(NextLegalSize(job, node_gpus / job.gpus_per_worker, placed - 1), placed) << job.key;
  }
  for (const int left : free) EXPECT_GE(left, 0);
}

std::vector<Grant> AllocateChecked(const AllocationSnapshot& snapshot) {
  std::vector<Grant> plan = Allocate(snapshot);
  ExpectPossible(snapshot, plan);
  return plan;
}

AllocationSnapshot Random(std::mt19937& random) {
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  AllocationSnapshot snapshot;
  const int node_gpus = draw(0, 1) == 0 ? 4 : 8;
  snapshot.nodes = Nodes(draw(1, 12), node_gpus);
  std::vector<int> free(snapshot.nodes.size(), node_gpus);
  for (int i = draw(1, 60); i > 0; --i) {
    const int min = draw(1, 6);
    PoolJob job = Job("team/job-" + std::to_string(i), min, min + draw(0, 30));
    job.step = static_cast<SizeStep>(draw(0, 2));
    job.gpus_per_worker = draw(0, 3) == 0 ? draw(2, 3) : 1;
    job.curve = Curve(draw(1, 10) / 10.0, draw(1, 40));
    if (draw(0, 4) == 0) job.curve.clear();
    job.age_seconds = draw(0, 4) * kHour;
    job.attained_gpu_seconds = draw(0, 30) * kHour;
    job.resizes = draw(0, 20);
    job.resize_cost_seconds = draw(0, 90);
    const auto node = static_cast<std::size_t>(draw(0, static_cast<int>(free.size()) - 1));
    const int gpus = min * job.gpus_per_worker;
    if (draw(0, 1) == 0 && free[node] >= gpus) {
      free[node] -= gpus;
      job.places = {{node, min}};
    }
    snapshot.jobs.push_back(std::move(job));
  }
  return snapshot;
}

TEST(Allocate, GivesEachItsMinimumBeforeAnyGetsMore) {
  // given: one job whose work gains much from each GPU, and six that gain nothing
  AllocationSnapshot snapshot{Nodes(2, 4), {Job("a/greedy", 1, 8)}};
  for (int i = 0; i < 6; ++i) {
    snapshot.jobs.push_back(Job("b/flat-" + std::to_string(i), 1, 8));
    snapshot.jobs.back().curve = Curve(0.01);
  }

  const std::vector<Grant> plan = AllocateChecked(snapshot);

  for (const auto& [key, size] : Sizes(plan)) EXPECT_EQ(size, key == "a/greedy" ? 2 : 1) << key;
}

TEST(Allocate, StartsAGangAtItsMinimumOrNotAtAll) {
  struct Case {
    int min, max, nodes, want;
    GrantReason reason;
  };
  for (const Case& c : {Case{3, 3, 1, 3, GrantReason::kStarted}, Case{4, 8, 2, 8, GrantReason::kStarted},
                        Case{6, 6, 2, 6, GrantReason::kStarted}, Case{5, 5, 1, 0, GrantReason::kCannotFit},
                        Case{9, 12, 2, 0, GrantReason::kCannotFit}}) {
    const AllocationSnapshot snapshot{Nodes(c.nodes, 4), {Job("a/gang", c.min, c.max)}};

    const std::vector<Grant> plan = AllocateChecked(snapshot);

    EXPECT_EQ(plan[0].to, c.want) << "min " << c.min;
    EXPECT_EQ(ToString(plan[0].reason), ToString(c.reason)) << "min " << c.min;
  }
}

TEST(Allocate, LeastServedGangComesFirstUnlessTheyAreNearlyEqual) {
  struct Case {
    const char* what;
    double running_gpu_hours, waiting_gpu_hours;
    int want_running, want_waiting;
  };
  for (const Case& c :
       {Case{"both new: who runs goes on", 1, 0, 4, 0}, Case{"much more service: it yields", 200, 0, 0, 4},
        Case{"service of the same order", 200, 180, 4, 0}, Case{"the other has more", 1, 200, 4, 0}}) {
    AllocationSnapshot snapshot{Nodes(1, 4), {Running("a/runs", 4, 4, {{0, 4}}), Job("a/waits", 4, 4)}};
    snapshot.jobs[0].attained_gpu_seconds = c.running_gpu_hours * kHour;
    snapshot.jobs[1].attained_gpu_seconds = c.waiting_gpu_hours * kHour;
    snapshot.jobs[1].age_seconds = 11 * kHour;  // The older one.

    const std::vector<Grant> plan = AllocateChecked(snapshot);

    EXPECT_EQ(plan[0].to, c.want_running) << c.what;
    EXPECT_EQ(plan[1].to, c.want_waiting) << c.what;
    EXPECT_EQ(plan[0].reason, c.want_running > 0 ? GrantReason::kKept : GrantReason::kPreempted) << c.what;
    EXPECT_EQ(plan[1].reason, c.want_waiting > 0 ? GrantReason::kStarted : GrantReason::kWaiting) << c.what;
  }
}

TEST(Allocate, WhoHasWaitedLongComesBeforeNewJobsInSpiteOfItsService) {
  AllocationSnapshot snapshot{Nodes(1, 4), {Job("a/new", 4, 4), Job("a/old", 4, 4)}};
  snapshot.jobs[1].attained_gpu_seconds = 40 * kHour;
  for (const auto& [age_hours, want_old] : std::map<double, int>{{20, 0}, {400, 4}}) {
    snapshot.jobs[1].age_seconds = age_hours * kHour;
    EXPECT_EQ(Sizes(AllocateChecked(snapshot)).at("a/old"), want_old) << age_hours << " h";
  }
}

TEST(Allocate, GpusGoWhereTheyGainMost) {
  struct Case {
    const char* what;
    double first, second;  // Exponents of the curves.
    int want_first, want_second;
  };
  for (const Case& c : {Case{"equals share alike", 0.9, 0.9, 4, 4}, Case{"one cannot use more", 0.9, 0.01, 7, 1}}) {
    AllocationSnapshot snapshot{Nodes(1, 8), {Job("a/first", 1, 7), Job("a/second", 1, 7)}};
    snapshot.jobs[0].curve = Curve(c.first);
    snapshot.jobs[1].curve = Curve(c.second);

    const std::map<std::string, int> sizes = Sizes(AllocateChecked(snapshot));

    EXPECT_EQ(sizes.at("a/first"), c.want_first) << c.what;
    EXPECT_EQ(sizes.at("a/second"), c.want_second) << c.what;
  }
}

TEST(Allocate, LittleServiceCountsMore) {
  AllocationSnapshot snapshot{Nodes(1, 8), {Job("a/long", 1, 8), Job("a/short", 1, 8)}};
  snapshot.jobs[0].attained_gpu_seconds = 15 * kHour;

  const std::map<std::string, int> sizes = Sizes(AllocateChecked(snapshot));

  EXPECT_GT(sizes.at("a/short"), sizes.at("a/long"));
}

// Shared equally, jobs that have long been served would all end last.
TEST(Allocate, OfLongServedJobsTheOneWithMostServiceIsFavoured) {
  struct Case {
    const char* what;
    double hours_a, hours_b;  // GPU hours of service.
    int sign;                 // 1: a gets more.
  };
  for (const Case& c : {Case{"the one with more of both", 200, 100, 1}, Case{"in any order", 100, 200, -1},
                        Case{"the only one that is served long", 70, 60, 1}, Case{"equals: the first", 100, 100, 1},
                        Case{"none is served long: who has less", 60, 20, -1}}) {
    AllocationSnapshot snapshot{Nodes(4, 4), {Job("x/a", 1, 16), Job("x/b", 1, 16)}};
    snapshot.jobs[0].attained_gpu_seconds = c.hours_a * kHour;
    snapshot.jobs[1].attained_gpu_seconds = c.hours_b * kHour;

    const std::map<std::string, int> sizes = Sizes(AllocateChecked(snapshot));

    EXPECT_GT(c.sign * (sizes.at("x/a") - sizes.at("x/b")), 0) << c.what;
  }
}

// Nobody loses to the favoured job what is due to it: neither its minimum, nor being new.
TEST(Allocate, TheFavouredJobTakesNothingFromNewOnesAndNoMinimum) {
  AllocationSnapshot snapshot{Nodes(4, 4), {Job("x/favoured", 1, 16), Job("x/new", 1, 16), Job("x/next", 2, 16)}};
  snapshot.jobs[0].attained_gpu_seconds = 300 * kHour;
  snapshot.jobs[2].attained_gpu_seconds = 200 * kHour;

  const std::map<std::string, int> sizes = Sizes(AllocateChecked(snapshot));

  EXPECT_GE(sizes.at("x/new"), sizes.at("x/favoured"));
  EXPECT_GE(sizes.at("x/next"), 2);
}

// Two equal long jobs on one pool: one ends when half of the work is done, not both at the end.
TEST(Allocate, AJobIsFavouredUntilItEnds) {
  constexpr double kRound = 600, kWork = 100 * kHour;  // GPU seconds at the speed of one GPU.
  AllocationSnapshot snapshot{Nodes(4, 4), {Job("x/a", 1, 16), Job("x/b", 1, 16)}};
  std::map<std::string, double> done, ended;
  for (PoolJob& job : snapshot.jobs) {
    job.attained_gpu_seconds = 63 * kHour;
    job.resize_cost_seconds = 30;
  }
  for (double now = 0; !snapshot.jobs.empty() && now < 100 * kHour; now += kRound) {
    const std::vector<Grant> plan = AllocateChecked(snapshot);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      PoolJob& job = snapshot.jobs[i];
      job.resizes += job.places.empty() || job.places == plan[i].places ? 0 : 1;
      job.places = plan[i].places;
      job.age_seconds += kRound;
      job.attained_gpu_seconds += kRound * plan[i].to;
      done[job.key] += kRound * std::pow(plan[i].to, 0.9);
      EXPECT_LE(job.resizes, 2) << job.key;
    }
    for (const PoolJob& job : snapshot.jobs) {
      if (done[job.key] >= kWork) ended[job.key] = now;
    }
    std::erase_if(snapshot.jobs, [&](const PoolJob& job) { return ended.contains(job.key); });
  }

  ASSERT_EQ(ended.size(), 2U);
  EXPECT_LT(std::min(ended["x/a"], ended["x/b"]), 0.7 * std::max(ended["x/a"], ended["x/b"]));
}

// Speed stands still from two GPUs to the border of the node, and doubles behind it: one GPU more never gains.
TEST(Allocate, StepsOverAFlatPieceOfTheCurve) {
  AllocationSnapshot snapshot{Nodes(2, 4), {Job("a/hump", 1, 8)}};
  snapshot.jobs[0].curve = Curve({{1, 1}, {2, 1.9}, {3, 1.9}, {4, 1.9}, {8, 4}});

  EXPECT_EQ(AllocateChecked(snapshot)[0].to, 8);
}

TEST(Allocate, AResizeMustPayForTheRestart) {
  struct Case {
    const char* what;
    double gain;  // Speed on four GPUs, in that on two.
    double age_seconds;
    int resizes, want;
  };
  for (const Case& c : {Case{"too little", 1.08, 10 * kHour, 0, 2}, Case{"enough", 1.3, 10 * kHour, 0, 4},
                        Case{"too young", 1.3, 60, 0, 2}, Case{"restarts too often", 1.3, 600, 8, 2},
                        Case{"young, but worth it", 2, 120, 0, 4}}) {
    AllocationSnapshot snapshot{Nodes(1, 4), {Running("a/job", 1, 4, {{0, 2}})}};
    snapshot.jobs[0].curve = Curve({{1, 1}, {2, 1.9}, {3, 1.9}, {4, 1.9 * c.gain}});
    snapshot.jobs[0].age_seconds = c.age_seconds;
    snapshot.jobs[0].resizes = c.resizes;

    EXPECT_EQ(AllocateChecked(snapshot)[0].to, c.want) << c.what;
  }
}

TEST(Allocate, GrowsOnlyIntoWhatIsKnown) {
  struct Case {
    int measured, want;  // GPUs: 0 is no curve.
  };
  for (const Case& c : {Case{0, 4}, Case{1, 4}, Case{2, 8}, Case{3, 12}, Case{4, 16}}) {
    AllocationSnapshot snapshot{Nodes(8, 4), {Job("a/job", 1, 32)}};
    snapshot.jobs[0].curve = Curve(1, c.measured);

    EXPECT_EQ(AllocateChecked(snapshot)[0].to, c.want) << c.measured << " GPUs measured";
  }
}

TEST(Allocate, WholeNodesAreWhole) {
  struct Case {
    int gpus_per_worker, min, max, want;
  };
  for (const Case& c : {Case{1, 1, 7, 4}, Case{1, 5, 9, 8}, Case{2, 1, 5, 4}, Case{4, 2, 2, 2}, Case{1, 5, 7, 0}}) {
    // given: two nodes with a part taken, so that three are whole
    AllocationSnapshot snapshot{Nodes(5, 4), {Job("a/whole", c.min, c.max)}};
    snapshot.jobs[0].step = SizeStep::kWholeNodes;
    snapshot.jobs[0].gpus_per_worker = c.gpus_per_worker;
    for (const std::size_t node : {0, 1}) {
      snapshot.jobs.push_back(Running("b/small-" + std::to_string(node), 1, 1, {{node, 1}}));
    }

    const std::vector<Grant> plan = AllocateChecked(snapshot);

    EXPECT_EQ(plan[0].to, c.want) << "min " << c.min;
    for (const NodeWorkers& place : plan[0].places) EXPECT_EQ(place.workers * c.gpus_per_worker, 4);
  }
}

TEST(Allocate, JobsThatStayKeepTheirNodesAndOthersFillGaps) {
  AllocationSnapshot snapshot{
      Nodes(3, 4),
      {Running("a/one", 1, 1, {{0, 1}}), Running("a/three", 3, 3, {{2, 3}}), Job("a/new", 1, 1), Job("a/large", 4, 4)}};

  const std::vector<Grant> plan = AllocateChecked(snapshot);

  EXPECT_EQ(plan[0].places, snapshot.jobs[0].places);
  EXPECT_EQ(plan[1].places, snapshot.jobs[1].places);
  EXPECT_EQ(plan[2].places, (std::vector<NodeWorkers>{{2, 1}}));  // The fullest node that has room.
  EXPECT_EQ(plan[3].places, (std::vector<NodeWorkers>{{1, 4}}));
}

TEST(Allocate, GrowsWhereItIs) {
  AllocationSnapshot snapshot{Nodes(4, 4), {Running("a/job", 1, 8, {{2, 4}})}};

  const std::vector<Grant> plan = AllocateChecked(snapshot);

  EXPECT_EQ(plan[0].places, (std::vector<NodeWorkers>{{0, 4}, {2, 4}}));
}

TEST(Allocate, SmallerJobsFillWhatALargeOneCannotUse) {
  AllocationSnapshot snapshot{Nodes(1, 4),
                              {Running("a/runs", 3, 3, {{0, 3}}), Job("a/large", 4, 4), Job("b/small", 1, 1)}};
  snapshot.jobs[1].age_seconds = kHour;

  const std::map<std::string, int> sizes = Sizes(AllocateChecked(snapshot));

  EXPECT_EQ(sizes, (std::map<std::string, int>{{"a/large", 0}, {"a/runs", 3}, {"b/small", 1}}));
}

TEST(Allocate, MovesSmallJobsTogetherSoThatALargeOneGrows) {
  // given: each node has one GPU taken
  AllocationSnapshot snapshot{Nodes(3, 4), {Job("a/large", 1, 8)}};
  for (const std::size_t node : {0, 1, 2}) {
    snapshot.jobs.push_back(Running("b/small-" + std::to_string(node), 1, 1, {{node, 1}}));
  }

  const std::vector<Grant> plan = AllocateChecked(snapshot);

  EXPECT_EQ(plan[0].to, 8);
  EXPECT_EQ(CountOf(plan, GrantReason::kMoved), 2);
}

TEST(Allocate, MovesAsFewGpusAsItCan) {
  // given: a node could be cleared by moving one GPU, or two, or three
  AllocationSnapshot snapshot{
      Nodes(3, 4), {Job("a/large", 4, 4), Running("b/one", 1, 1, {{1, 1}}), Running("b/two", 2, 2, {{2, 2}})}};
  for (const char* key : {"b/x", "b/y", "b/z"}) snapshot.jobs.push_back(Running(key, 1, 1, {{0, 1}}));

  const std::vector<Grant> plan = AllocateChecked(snapshot);

  EXPECT_EQ(plan[0].places, (std::vector<NodeWorkers>{{1, 4}}));
  EXPECT_EQ(plan[1].reason, GrantReason::kMoved);
  EXPECT_EQ(CountOf(plan, GrantReason::kMoved), 1);
}

TEST(Allocate, GetsLessWhereRoomIsScattered) {
  // given: one GPU is free on each of two nodes, and nobody on them would fit elsewhere
  const AllocationSnapshot snapshot{
      Nodes(2, 4), {Job("a/job", 1, 2), Running("b/left", 3, 3, {{0, 3}}), Running("b/right", 3, 3, {{1, 3}})}};

  const std::vector<Grant> plan = AllocateChecked(snapshot);

  EXPECT_EQ(plan[0].to, 1);
  EXPECT_EQ(CountOf(plan, GrantReason::kKept), 2);
}

TEST(Allocate, AGangAtItsMinimumGetsItsPlaceAlthoughLargeJobsLieAcross) {
  // given: two jobs of a node and a half on two nodes each; closer together they leave a node for the gang
  const AllocationSnapshot snapshot{
      Nodes(4, 8),
      {Job("a/gang", 8, 8), Running("b/left", 12, 12, {{0, 8}, {1, 4}}), Running("b/right", 12, 12, {{2, 8}, {3, 4}})}};

  const std::map<std::string, int> sizes = Sizes(AllocateChecked(snapshot));

  EXPECT_EQ(sizes, (std::map<std::string, int>{{"a/gang", 8}, {"b/left", 12}, {"b/right", 12}}));
}

TEST(Allocate, GivesUpPlacesThatANodeHasLost) {
  AllocationSnapshot snapshot{Nodes(2, 4), {Running("a/job", 4, 4, {{0, 4}})}};
  snapshot.nodes[0].gpus = 0;

  const std::vector<Grant> plan = AllocateChecked(snapshot);

  EXPECT_EQ(plan[0].places, (std::vector<NodeWorkers>{{1, 4}}));
  EXPECT_EQ(plan[0].reason, GrantReason::kMoved);
}

TEST(Allocate, NothingIsAPlanToo) {
  EXPECT_TRUE(Allocate({}).empty());
  EXPECT_EQ(AllocateChecked({{}, {Job("a/job", 1, 1)}})[0].reason, GrantReason::kCannotFit);
}

TEST(Allocate, PlansArePossibleAndDoNotDependOnTheOrderOfJobs) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    AllocationSnapshot snapshot = Random(random);
    std::map<std::string, std::vector<NodeWorkers>> want;
    for (const Grant& grant : AllocateChecked(snapshot)) want[std::string(grant.job)] = grant.places;

    std::shuffle(snapshot.jobs.begin(), snapshot.jobs.end(), random);

    for (const Grant& grant : AllocateChecked(snapshot)) {
      EXPECT_EQ(grant.places, want.at(std::string(grant.job))) << grant.job << " in round " << round;
    }
    if (HasFailure()) return;
  }
}

TEST(Allocate, APlanThatIsCarriedOutIsKept) {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 100; ++round) {
    // given: nodes of four, and jobs that fit them without waste, whose plan was carried out
    AllocationSnapshot snapshot{Nodes(4, 4), {}};
    for (int i = 0; i < 12; ++i) {
      snapshot.jobs.push_back(Job("team/job-" + std::to_string(i), 1, 1 << random() % 4));
      snapshot.jobs.back().age_seconds = kHour;
      snapshot.jobs.back().resize_cost_seconds = 30;
    }
    std::vector<Grant> plan = AllocateChecked(snapshot);
    for (std::size_t i = 0; i < plan.size(); ++i) snapshot.jobs[i].places = plan[i].places;

    for (const Grant& grant : AllocateChecked(snapshot)) EXPECT_EQ(grant.reason, GrantReason::kKept) << grant.job;
  }
}

// For two weeks, jobs arrive that need a fifth more than the pool has; the first two need many GPUs at once.
TEST(Allocate, NobodyStarvesUnderEndlessNewJobs) {
  constexpr double kRound = 600, kHoursOfSmallJob = 3.2;
  AllocationSnapshot snapshot{Nodes(2, 8), {Job("a/whole-pool", 16, 16), Job("a/node", 8, 8)}};
  snapshot.jobs[0].attained_gpu_seconds = snapshot.jobs[1].attained_gpu_seconds = 30 * kHour;
  std::map<std::string, double> waits, longest, ran;
  for (int round = 0; round < 14 * 24 * 6; ++round) {
    snapshot.jobs.push_back(Job("b/small-" + std::to_string(round), 1, 4));
    const std::vector<Grant> plan = Allocate(snapshot);
    for (std::size_t i = 0; i < plan.size(); ++i) {
      PoolJob& job = snapshot.jobs[i];
      job.places = plan[i].places;
      job.age_seconds += kRound;
      job.attained_gpu_seconds += plan[i].to * kRound;
      ran[job.key] += plan[i].to > 0 ? kRound : 0;
      waits[job.key] = plan[i].to > 0 ? 0 : waits[job.key] + kRound;
      longest[job.key] = std::max(longest[job.key], waits[job.key]);
    }
    std::erase_if(snapshot.jobs, [](const PoolJob& job) {
      return job.key.starts_with("b/") && job.attained_gpu_seconds >= kHoursOfSmallJob * kHour;
    });
  }
  // Owed a twentieth of its minimum, each is even again after 30 h / (0.05 min), overdue half a day later, and first
  // when the older one has had its turn.
  EXPECT_LT(longest.at("a/whole-pool"), (30 / (0.05 * 16) + 24) * kHour);
  EXPECT_LT(longest.at("a/node"), (30 / (0.05 * 8) + 24) * kHour);
  for (const auto& [key, wait] : longest) EXPECT_LT(wait, 5 * 24 * kHour) << key;
  EXPECT_GT(ran.at("a/whole-pool"), 8 * kHour);
  EXPECT_GT(ran.at("a/node"), 8 * kHour);
}

}  // namespace
}  // namespace grus

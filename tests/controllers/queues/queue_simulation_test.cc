// SPDX-License-Identifier: Apache-2.0
// Queues over days: jobs arrive from a seed, are served, started, reclaimed and end. One tick is a minute, and the
// notice that a job has before it yields.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "controllers/queues/reclaim.h"
#include "controllers/queues/service_order.h"
#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

struct SimJob {
  std::string key;
  QueueIndex queue = kNoQueue;
  int min = 1, max = 1;  // GPUs.
  int ticks = 1;         // It runs so long, whatever its size.
  int running = 0;       // GPUs, without those that yield.
  int yielding = 0;
  double attained = 0;
};

// The mean arrivals and sizes of one queue's jobs.
struct Arrivals {
  std::string queue;
  int every_ticks = 10;  // On average.
  int most_gpus = 8;
  int most_ticks = 120;
};

class Simulation {
 public:
  Simulation(const QueueTree& tree, std::vector<Arrivals> arrivals, unsigned seed)
      : tree_(tree),
        arrivals_(std::move(arrivals)),
        draws_(seed),
        waiting_(static_cast<std::size_t>(tree.size())),
        served_(static_cast<std::size_t>(tree.size()), 0) {}

  void Run(int ticks) {
    for (int i = 0; i < ticks; ++i) Tick();
  }

  // GPU minutes of each queue since the start.
  double ServedOf(const std::string& queue) const { return served_[static_cast<std::size_t>(tree_.Find(queue))]; }
  int stopped() const { return stopped_; }
  int shrunk() const { return shrunk_; }
  double utilisation() const { return used_ticks_ / (static_cast<double>(tree_.PoolAt(0).milli) / kOneGpu * now_); }

 private:
  std::deque<SimJob>& WaitingIn(QueueIndex queue) { return waiting_[static_cast<std::size_t>(queue)]; }

  QueueUse Use() const {
    QueueUse use(tree_);
    for (const SimJob& job : running_) {
      use.Add(job.queue, 0, {(job.running + job.yielding) * kOneGpu, 0, job.yielding * kOneGpu});
    }
    return use;
  }

  void Tick() {
    ++now_;
    EndAndYield();
    Arrive();
    QueueUse use = Use();
    StartPromised(use);
    StartInOrder(use);
    CheckGuarantees(use);
    Reclaim(use);
    for (SimJob& job : running_) {
      served_[static_cast<std::size_t>(job.queue)] += job.running + job.yielding;
      used_ticks_ += job.running + job.yielding;
      job.attained += 60.0 * (job.running + job.yielding);
    }
    ASSERT_LE(use.used(kRootQueue, 0), tree_.PoolAt(0).milli);
  }

  void EndAndYield() {
    std::vector<SimJob> left;
    for (SimJob& job : running_) {
      if (--job.ticks <= 0) continue;
      job.yielding = 0;
      if (job.running > 0) left.push_back(job);
      else WaitingIn(job.queue).push_front(job);  // It goes on where it was.
    }
    running_ = std::move(left);
  }

  void Arrive() {
    for (const Arrivals& arrivals : arrivals_) {
      if (!draws_.OneIn(arrivals.every_ticks)) continue;
      SimJob job;
      job.key = std::string("job-") + std::to_string(++made_);
      job.queue = tree_.Find(arrivals.queue);
      job.min = static_cast<int>(draws_.Between(1, arrivals.most_gpus));
      job.max = draws_.OneIn(3) ? 2 * job.min : job.min;
      job.ticks = static_cast<int>(draws_.Between(1, arrivals.most_ticks));
      WaitingIn(job.queue).push_back(job);
    }
  }

  bool Start(QueueUse& use, QueueIndex queue, bool is_promised = false) {
    SimJob job = WaitingIn(queue).front();
    if (!Admit(use, {queue, {{0, job.min * kOneGpu}}}).is_admitted()) return false;
    // What is promised to others is not its to grow into.
    const std::int64_t most = is_promised ? job.min : job.max;
    job.running = static_cast<int>(std::min(most, HeadroomOf(use, queue, 0) / kOneGpu));
    use.Add(queue, 0, {job.running * kOneGpu, 0, 0});
    WaitingIn(queue).pop_front();
    running_.push_back(job);
    return true;
  }

  // GPUs that others yielded go to those for whom they did.
  void StartPromised(QueueUse& use) {
    for (const auto& [queue, key] : promised_) {
      ASSERT_FALSE(WaitingIn(queue).empty());
      if (WaitingIn(queue).front().key != key) continue;  // A job that was stopped comes before it.
      ASSERT_TRUE(Start(use, queue, true)) << key << " of queue " << tree_.NameOf(queue) << " at " << now_;
    }
  }

  void StartInOrder(QueueUse& use) {
    ServiceOrder order(use);
    const auto set_first = [&](QueueIndex queue) {
      if (WaitingIn(queue).empty()) order.Remove(queue);
      else order.SetFirst(queue, {{0, WaitingIn(queue).front().min * kOneGpu}});
    };
    for (QueueIndex queue = kRootQueue + 1; queue < tree_.size(); ++queue) set_first(queue);
    in_order_.clear();
    for (QueueIndex queue = order.Next(); queue != kNoQueue; queue = order.Next()) {
      if (Start(use, queue)) {
        set_first(queue);
      } else {
        in_order_.push_back(queue);
        order.Remove(queue);
      }
    }
  }

  // A job that fits into the guarantee of its queue does not wait for longer than the notice.
  void CheckGuarantees(const QueueUse& use) {
    std::set<std::string> owed;
    for (const QueueIndex queue : in_order_) {
      const SimJob& job = WaitingIn(queue).front();
      if (use.used(queue, 0) + job.min * kOneGpu > tree_.QuotaOf(queue, 0).guaranteed) continue;
      ASSERT_FALSE(owed_.contains(job.key)) << job.key << " of queue " << tree_.NameOf(queue) << " at " << now_;
      owed.insert(job.key);
    }
    owed_ = std::move(owed);
  }

  void Reclaim(const QueueUse& use) {
    std::vector<QueueDemand> demands(static_cast<std::size_t>(tree_.size()));
    std::vector<ReclaimJob> jobs;
    for (const SimJob& job : running_) {
      QueueDemand& demand = demands[static_cast<std::size_t>(job.queue)];
      demand.used += job.running * kOneGpu;
      demand.wanted += job.max * kOneGpu;
      jobs.push_back({.key = job.key,
                      .queue = job.queue,
                      .workers = job.running,
                      .min_workers = job.min,
                      .attained_gpu_seconds = job.attained});
    }
    std::vector<ReclaimRequest> requests;
    for (QueueIndex queue = kRootQueue + 1; queue < tree_.size(); ++queue) {
      for (const SimJob& job : WaitingIn(queue)) demands[static_cast<std::size_t>(queue)].wanted += job.max * kOneGpu;
    }
    for (const QueueIndex queue : in_order_) {
      const SimJob& job = WaitingIn(queue).front();
      requests.push_back({.job = job.key, .queue = queue, .milli = job.min * kOneGpu});
    }
    const ReclaimPlan plan = PlanReclaim(use, 0, FairShares(tree_, 0, demands), jobs, requests);
    for (const Yield& yield : plan.yields) {
      const auto job = std::ranges::find_if(running_, [&](const SimJob& j) { return j.key == yield.job; });
      job->yielding = yield.from - yield.to;
      job->running = yield.to;
      ++(yield.to == 0 ? stopped_ : shrunk_);
    }
    promised_.clear();
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const ReclaimOutcome outcome = plan.answers[i].outcome;
      if (outcome != ReclaimOutcome::kReclaimed && outcome != ReclaimOutcome::kFree) continue;
      promised_.emplace_back(requests[i].queue, requests[i].job);
    }
  }

  const QueueTree& tree_;
  const std::vector<Arrivals> arrivals_;
  Draws draws_;
  std::vector<std::deque<SimJob>> waiting_;  // By queue.
  std::vector<SimJob> running_;
  std::vector<std::pair<QueueIndex, std::string>> promised_;
  std::vector<QueueIndex> in_order_;  // Queues whose first job waits, in the order of service.
  std::set<std::string> owed_;        // Jobs that waited a tick ago although their queue is below its guarantee.
  std::vector<double> served_;
  double used_ticks_ = 0;
  int now_ = 0, made_ = 0, stopped_ = 0, shrunk_ = 0;
};

// R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness and Discrimination for Resource Allocation in Shared
// Computer Systems", 1984: 1 if all are equal.
double JainIndex(const std::vector<double>& values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  return sum * sum / (static_cast<double>(values.size()) * squares);
}

constexpr int kDay = 24 * 60;

TEST(QueueSimulation, SharesEquallyAmongEqualsWhateverEachAsksFor) {
  // Each asks for more than its eighth, in jobs of different sizes and lengths: the first for 1.5 times, the last
  // for 30.
  std::vector<QueueSpec> specs;
  std::vector<Arrivals> arrivals;
  for (int i = 0; i < 8; ++i) {
    const std::string name = "team-" + std::to_string(i);
    specs.push_back(QueueIn(name, "", {}));
    arrivals.push_back({name, 12 / (1 + i % 4), i % 2 == 0 ? 4 : 8, i < 4 ? 120 : 240});
  }
  const QueueTree tree = TreeOf(specs, 64);
  for (const unsigned seed : {1U, 2U, 3U}) {
    Simulation simulation(tree, arrivals, seed);
    ASSERT_NO_FATAL_FAILURE(simulation.Run(5 * kDay));
    std::vector<double> served;
    for (const QueueSpec& spec : specs) served.push_back(simulation.ServedOf(spec.name));
    RecordProperty("jain", std::to_string(JainIndex(served)));
    EXPECT_GE(JainIndex(served), 0.99) << "seed " << seed;
    EXPECT_GE(simulation.utilisation(), 0.95) << "seed " << seed;
  }
}

TEST(QueueSimulation, SharesByWeight) {
  std::vector<QueueSpec> specs;
  std::vector<Arrivals> arrivals;
  for (int i = 1; i <= 4; ++i) {
    const std::string name = "team-" + std::to_string(i);
    specs.push_back(QueueIn(name, "", {.weight = i}));
    arrivals.push_back({name, 1, 4, 120});
  }
  const QueueTree tree = TreeOf(specs, 200);
  Simulation simulation(tree, arrivals, 7);
  ASSERT_NO_FATAL_FAILURE(simulation.Run(5 * kDay));
  std::vector<double> served_by_weight;
  for (int i = 1; i <= 4; ++i) served_by_weight.push_back(simulation.ServedOf("team-" + std::to_string(i)) / i);
  EXPECT_GE(JainIndex(served_by_weight), 0.99);
}

// Random trees and loads: Simulation checks that no job within a guarantee waits longer than one notice, and that what
// is promised is there.
TEST(QueueSimulation, NoQueueBelowItsGuaranteeWaitsLongerThanOneNotice) {
  int stopped = 0, shrunk = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Draws draws(seed);
    const QueueTree tree = RandomTree(draws, 10);
    std::vector<Arrivals> arrivals;
    for (QueueIndex queue = kRootQueue + 1; queue < tree.size(); ++queue) {
      if (!tree.IsLeaf(queue)) continue;
      arrivals.push_back({tree.NameOf(queue), static_cast<int>(draws.Between(2, 40)),
                          static_cast<int>(draws.Between(1, 8)), static_cast<int>(draws.Between(10, 200))});
    }
    Simulation simulation(tree, arrivals, seed);
    ASSERT_NO_FATAL_FAILURE(simulation.Run(300));
    stopped += simulation.stopped();
    shrunk += simulation.shrunk();
  }
  EXPECT_GT(stopped, 100);
  EXPECT_GT(shrunk, 100);
}

}  // namespace
}  // namespace grus

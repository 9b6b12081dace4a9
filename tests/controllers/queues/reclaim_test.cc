// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/reclaim.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/controllers/queues/queue_fixture.h"

namespace grus {
namespace {

// What a test says of a running job: workers of one GPU.
struct Runs {
  std::string queue, key;
  int workers = 1;
  int min = 1;
  JobClass job_class = JobClass::kUnattended;
  int priority = 0;
  double attained = 0;
  int worker_gpus = 1;
  int yielding = 0;
  std::int64_t running_seconds = 1'000'000;
  bool comes_back = true;
};

struct Needs {
  std::string queue;
  double gpus = 1;
  JobClass job_class = JobClass::kUnattended;
  int priority = 0;
  std::string key = "new";
};

class Cluster {
 public:
  Cluster(const std::vector<QueueSpec>& specs, double gpus, const std::vector<Runs>& running)
      : tree_(TreeOf(specs, gpus)), use_(tree_) {
    for (const Runs& runs : running) {
      const QueueIndex queue = tree_.Find(runs.queue);
      const std::int64_t milli = Gpus(runs.worker_gpus);
      const bool is_fixed = !IsPreemptible(runs.job_class, runs.comes_back);
      use_.Add(queue, 0,
               {(runs.workers + runs.yielding) * milli, is_fixed ? runs.min * milli : 0, runs.yielding * milli});
      jobs_.push_back({runs.key, queue, runs.job_class, runs.priority, runs.comes_back, runs.workers, runs.min, milli,
                       runs.attained, runs.running_seconds});
    }
  }

  ReclaimPlan Plan(const std::vector<Needs>& needs) const {
    std::vector<QueueDemand> demands(static_cast<std::size_t>(tree_.size()));
    for (const ReclaimJob& job : jobs_) {
      QueueDemand& demand = demands[static_cast<std::size_t>(job.queue)];
      demand.used += job.workers * job.worker_milli;
      demand.wanted += job.workers * job.worker_milli;
    }
    std::vector<ReclaimRequest> requests;
    for (const Needs& need : needs) {
      const QueueIndex queue = tree_.Find(need.queue);
      demands[static_cast<std::size_t>(queue)].wanted += Gpus(need.gpus);
      requests.push_back(
          {need.key, queue, need.job_class, need.priority, IsPreemptible(need.job_class, true), Gpus(need.gpus)});
    }
    return PlanReclaim(use_, 0, FairShares(tree_, 0, demands), jobs_, requests);
  }

  const QueueTree& tree() const { return tree_; }
  std::vector<ReclaimJob>& jobs() { return jobs_; }

 private:
  QueueTree tree_;
  QueueUse use_;
  std::vector<ReclaimJob> jobs_;
};

// "KEY FROM>TO" of each.
std::string TextOf(const std::vector<Yield>& yields) {
  std::string text;
  for (const Yield& yield : yields) {
    text += (text.empty() ? "" : ", ") + yield.job + " " + std::to_string(yield.from) + ">" + std::to_string(yield.to);
  }
  return text;
}

const std::vector<QueueSpec> kTwoQueues = {QueueIn("a", "", {.guaranteed = 4}), QueueIn("b", "", {.guaranteed = 4})};

struct Case {
  const char* what;
  std::vector<Runs> running;
  Needs needs;
  const char* yields;
  ReclaimOutcome outcome = ReclaimOutcome::kReclaimed;
};

void ExpectYields(const std::vector<QueueSpec>& specs, double gpus, const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const ReclaimPlan plan = Cluster(specs, gpus, c.running).Plan({c.needs});
    EXPECT_EQ(TextOf(plan.yields), c.yields) << c.what;
    EXPECT_EQ(plan.answers.at(0).outcome, c.outcome) << c.what;
  }
}

constexpr JobClass kInteractive = JobClass::kInteractive, kUnattended = JobClass::kUnattended;

TEST(PlanReclaim, TakesSurplusBeforeWholeJobs) {
  ExpectYields(
      kTwoQueues, 8,
      {
          {"surplus is enough", {{"b", "elastic", 6, 2}, {"b", "rigid", 2, 2}}, {"a", 3}, "elastic 6>3"},
          {"surplus and a job", {{"b", "elastic", 5, 4}, {"b", "rigid", 3, 3}}, {"a", 4}, "elastic 5>4, rigid 3>0"},
          {"a job that makes the surplus needless",
           {{"b", "elastic", 4, 3, JobClass::kInference}, {"b", "rigid", 4, 4}},
           {"a", 4},
           "rigid 4>0"},
          {"idle GPUs count", {{"b", "elastic", 6, 2}}, {"a", 3}, "elastic 6>5"},
          {"idle GPUs are enough", {{"b", "elastic", 5, 2}}, {"a", 3}, "", ReclaimOutcome::kFree},
      });
}

TEST(PlanReclaim, AsksAsFewJobsAsPossible) {
  ExpectYields(
      kTwoQueues, 8,
      {
          {"the one surplus that is enough", {{"b", "x", 2, 1}, {"b", "y", 4, 1}, {"b", "z", 2, 1}}, {"a", 3}, "y 4>1"},
          {"the largest, then one that is enough",
           {{"b", "x", 2, 1}, {"b", "y", 4, 1}, {"b", "z", 2, 1}},
           {"a", 4},
           "x 2>1, y 4>1"},
          {"whole jobs likewise",
           {{"b", "x", 1}, {"b", "y", 3, 3}, {"b", "z", 2, 2}, {"b", "w", 2, 2}},
           {"a", 3},
           "y 3>0"},
          {"whole workers", {{"b", "x", 4, 1, kUnattended, 0, 0, 2}}, {"a", 3}, "x 4>2"},
      });
}

TEST(PlanReclaim, StopsLowerClassesThenLowerPrioritiesThenTheYoungest) {
  ExpectYields(
      kTwoQueues, 8,
      {
          {"idle only before unattended",
           {{"b", "batch", 4, 4, kUnattended, -5}, {"b", "spare", 4, 4, JobClass::kIdleOnly, 5}},
           {"a", 4},
           "spare 4>0"},
          {"lower priority",
           {{"b", "high", 4, 4, kUnattended, 7}, {"b", "low", 4, 4, kUnattended, -1, 99}},
           {"a", 4},
           "low 4>0"},
          {"least attained service",
           {{"b", "old", 4, 4, kUnattended, 0, 900}, {"b", "young", 4, 4, kUnattended, 0, 20}},
           {"a", 4},
           "young 4>0"},
          {"of those that are enough",
           {{"b", "small", 1, 1}, {"b", "old", 4, 4, kUnattended, 0, 900}, {"b", "young", 3, 3, kUnattended, 0, 20}},
           {"a", 3},
           "young 3>0"},
          {"then by key", {{"b", "y", 4, 4}, {"b", "x", 4, 4}}, {"a", 4}, "x 4>0"},
      });
}

TEST(PlanReclaim, LeavesToOthersWhatTheyAreGuaranteed) {
  ExpectYields(
      kTwoQueues, 8,
      {
          {"b keeps 4", {{"b", "x", 6, 1}, {"default", "y", 2, 1}}, {"a", 4}, "x 6>4, y 2>0"},
          {"all is guaranteed", {{"b", "x", 4, 1}, {"a", "y", 4, 4}}, {"a", 1}, "", ReclaimOutcome::kNotEntitled},
          {"of two gangs the one that borrows in whole",
           {{"b", "gang", 6, 6}, {"b", "small", 2, 2, kUnattended, 9, 99}},
           {"a", 2},
           "small 2>0"},
          {"a gang that borrows in part, if nothing else is enough", {{"b", "gang", 7, 7}}, {"a", 4}, "gang 7>0"},
          {"the same for a worker", {{"b", "x", 3, 1, kUnattended, 0, 0, 2}, {"a", "y", 2, 2}}, {"a", 1}, "x 3>2"},
      });
}

TEST(PlanReclaim, TakesNothingIfThatIsNotEnough) {
  const Runs bare{.queue = "b", .key = "bare", .workers = 6, .min = 6, .comes_back = false};
  const Runs new_one{.queue = "b", .key = "new-one", .workers = 6, .min = 6, .running_seconds = 59};
  std::vector<QueueSpec> specs = kTwoQueues;
  specs[1].minimum_runtime_seconds = 60;
  for (const Runs& stays : {Runs{"b", "interactive", 6, 6, kInteractive},
                            Runs{"b", "inference", 6, 6, JobClass::kInference}, bare, new_one}) {
    const ReclaimPlan plan = Cluster(specs, 8, {{"b", "x", 2, 1}, stays}).Plan({{"a", 3}});
    EXPECT_EQ(TextOf(plan.yields), "") << stays.key;
    EXPECT_EQ(plan.answers[0].outcome, ReclaimOutcome::kNotEnough) << stays.key;
    EXPECT_EQ(plan.answers[0].lacking, Gpus(1)) << stays.key;
  }
}

TEST(PlanReclaim, DoesAsTheQueueSaysOfReclaim) {
  struct Policy {
    ReclaimPolicy reclaim;
    const char* yields;
    ReclaimOutcome outcome;
  };
  for (const Policy& c : {Policy{ReclaimPolicy::kAny, "low 4>0", ReclaimOutcome::kReclaimed},
                          Policy{ReclaimPolicy::kLowerPriority, "low 4>0", ReclaimOutcome::kReclaimed},
                          Policy{ReclaimPolicy::kNever, "", ReclaimOutcome::kNotEntitled}}) {
    std::vector<QueueSpec> specs = kTwoQueues;
    specs[0].reclaim = c.reclaim;
    const std::vector<Runs> running = {{"b", "low", 4, 4, kUnattended, 1}, {"b", "same", 4, 4, kUnattended, 5}};
    const ReclaimPlan plan = Cluster(specs, 8, running).Plan({{"a", 4, kUnattended, 5}});
    EXPECT_EQ(TextOf(plan.yields), c.yields);
    EXPECT_EQ(plan.answers[0].outcome, c.outcome);
  }
  std::vector<QueueSpec> specs = kTwoQueues;
  specs[0].reclaim = ReclaimPolicy::kLowerPriority;
  EXPECT_EQ(
      Cluster(specs, 8, {{"b", "same", 8, 1, kUnattended, 5}}).Plan({{"a", 4, kUnattended, 5}}).answers[0].outcome,
      ReclaimOutcome::kNotEnough);
}

TEST(PlanReclaim, GivesEachQueueItsFairShare) {
  const std::vector<QueueSpec> specs = {QueueIn("a", "", {}), QueueIn("b", "", {}), QueueIn("c", "", {.weight = 2})};
  ExpectYields(specs, 12,
               {
                   {"half each, while c wants nothing", {{"b", "x", 12, 1}}, {"a", 6}, "x 12>6"},
                   {"not more than half", {{"b", "x", 12, 1}}, {"a", 7}, "", ReclaimOutcome::kNotEntitled},
                   {"c counts twice", {{"b", "x", 12, 1}}, {"c", 8}, "x 12>4"},
                   {"the one most above its share first", {{"a", "x", 5, 1}, {"b", "y", 7, 1}}, {"c", 3}, "y 7>4"},
                   {"then the next", {{"a", "x", 5, 1}, {"b", "y", 7, 1}}, {"c", 6}, "x 5>3, y 7>3"},
                   {"a gang of a queue above its share",
                    {{"b", "x", 5, 5}, {"b", "y", 5, 5, kUnattended, 1}},
                    {"a", 5},
                    "x 5>0"},
               });
}

// As in Hadoop's Fair Scheduler, whose fairSharePreemptionThreshold is 0.5.
TEST(PlanReclaim, StopsJobsForAFairShareOnlyWhileAQueueHasLessThanHalfOfIt) {
  const std::vector<QueueSpec> specs = {QueueIn("a", "", {}), QueueIn("b", "", {})};
  ExpectYields(specs, 16,
               {{"3 of 8", {{"a", "mine", 3, 3}, {"b", "x", 13, 13}}, {"a", 4}, "x 13>0"},
                {"4 of 8", {{"a", "mine", 4, 4}, {"b", "x", 12, 12}}, {"a", 4}, "", ReclaimOutcome::kNotEnough},
                {"surplus always", {{"a", "mine", 7, 7}, {"b", "x", 9, 1}}, {"a", 1}, "x 9>8"}});
}

TEST(PlanReclaim, GivesGuaranteesToNoFairShare) {
  const std::vector<QueueSpec> specs = {QueueIn("a", "", {}), QueueIn("b", "", {.guaranteed = 4})};
  // The share of a is 4 of 12, of b 4 + 4. The gang would leave b with less than its guarantee.
  ExpectYields(specs, 12,
               {{"a gang", {{"b", "x", 9, 9}}, {"a", 4}, "", ReclaimOutcome::kNotEnough},
                {"surplus", {{"b", "x", 9, 3}}, {"a", 4}, "x 9>8"}});
}

TEST(PlanReclaim, CountsWhatYieldsAlready) {
  const std::vector<Runs> running = {{.queue = "b", .key = "x", .workers = 4, .min = 1, .yielding = 3},
                                     {.queue = "b", .key = "y"}};
  const Cluster cluster(kTwoQueues, 8, running);
  EXPECT_EQ(cluster.Plan({{"a", 3}}).answers[0].outcome, ReclaimOutcome::kFree);
  EXPECT_EQ(TextOf(cluster.Plan({{"a", 3}}).yields), "") << "a second victim for the same GPUs";
  EXPECT_EQ(TextOf(cluster.Plan({{"a", 4}}).yields), "x 4>3");
  // What one request gets, the next one cannot have.
  const ReclaimPlan plan = cluster.Plan({{"a", 3}, {.queue = "a", .gpus = 1, .key = "second"}});
  EXPECT_EQ(TextOf(plan.yields), "x 4>3");
  EXPECT_EQ(plan.yields[0].for_job, "second");
  EXPECT_EQ(plan.answers[0].outcome, ReclaimOutcome::kFree);
  EXPECT_EQ(plan.answers[1].outcome, ReclaimOutcome::kReclaimed);
}

TEST(PlanReclaim, ServesRequestsInTheirOrder) {
  const std::vector<QueueSpec> specs = {QueueIn("a", "", {.guaranteed = 4}), QueueIn("b", "", {.guaranteed = 4}),
                                        QueueIn("c", "", {})};
  const ReclaimPlan plan =
      Cluster(specs, 8, {{"c", "x", 8, 2}})
          .Plan({{.queue = "a", .gpus = 4, .key = "first"}, {.queue = "b", .gpus = 4, .key = "second"}});
  // The second one needs the minimum, too: then the job ends, once.
  EXPECT_EQ(TextOf(plan.yields), "x 8>0");
  EXPECT_EQ(plan.yields[0].for_job, "first");
}

// Children of one parent share the parent's part.
TEST(PlanReclaim, TakesFromSiblingsFirst) {
  const std::vector<QueueSpec> specs = {QueueIn("r", "", {.guaranteed = 8}), QueueIn("r-a", "r", {.guaranteed = 4}),
                                        QueueIn("r-b", "r", {}), QueueIn("p", "", {.guaranteed = 8})};
  ExpectYields(specs, 16,
               {
                   {"the sibling has the parent's part", {{"r-b", "x", 8, 1}, {"p", "y", 8, 1}}, {"r-a", 4}, "x 8>4"},
                   {"the sibling first, then p for what the parent lacks",
                    {{"r-b", "x", 7, 1}, {"p", "y", 9, 1}},
                    {"r-a", 4},
                    "x 7>4, y 9>8"},
                   {"not a sibling within its share", {{"r-b", "x", 3, 1}, {"p", "y", 13, 1}}, {"r-a", 3}, "y 13>10"},
                   {"p only as far as the parent is below its guarantee",
                    {{"r-b", "x", 5, 5, kInteractive}, {"p", "y", 11, 1}},
                    {"r-a", 3},
                    "y 11>8"},
                   {"a queue uses what its parent is guaranteed", {{"p", "y", 16, 1}}, {"r-b", 8}, "y 16>8"},
                   {"p keeps its guarantee",
                    {{"r-b", "x", 8, 8, kInteractive}, {"p", "y", 8, 1}},
                    {"r-a", 4},
                    "",
                    ReclaimOutcome::kNotEnough},
               });
}

TEST(PlanReclaim, LeavesToASubtreeWhatItsTopIsGuaranteed) {
  const std::vector<QueueSpec> specs = {QueueIn("r", "", {.guaranteed = 8}), QueueIn("r-a", "r", {}),
                                        QueueIn("r-b", "r", {}), QueueIn("p", "", {.guaranteed = 8})};
  // r-a has no guarantee of its own, but uses what its parent has.
  ExpectYields(
      specs, 16,
      {{"within the parent's", {{"r-a", "x", 8, 1}, {"p", "y", 5, 5}, {"default", "z", 3, 1}}, {"p", 3}, "z 3>0"},
       {"above the parent's", {{"r-a", "x", 11, 1}, {"p", "y", 5, 5}}, {"p", 3}, "x 11>8"}});
}

// Otherwise p would wait for ever: r uses 11 of its 12, but r-a withholds 4 of these.
TEST(PlanReclaim, CountsWhatIsWithheldAsHadByTheParent) {
  const std::vector<QueueSpec> specs = {QueueIn("r", "", {.guaranteed = 12}),
                                        QueueIn("r-a", "r", {.guaranteed = 4, .limit = -1, .lendable = 0}),
                                        QueueIn("r-b", "r", {}), QueueIn("p", "", {.guaranteed = 4})};
  ExpectYields(specs, 16, {{"r-b", {{"r-b", "x", 11, 1}}, {"p", 4}, "x 11>8"}});
  // And r-b cannot have from p what its parent is guaranteed and r-a withholds.
  ExpectYields(specs, 16,
               {{"p", {{"r-b", "x", 8, 8}, {"p", "y", 4, 1}}, {"r-b", 1}, "", ReclaimOutcome::kNotEntitled}});
}

TEST(PlanReclaim, MakesRoomBelowTheLimitOfAParent) {
  const std::vector<QueueSpec> specs = {QueueIn("r", "", {.guaranteed = 4, .limit = 6}),
                                        QueueIn("r-a", "r", {.guaranteed = 4}), QueueIn("r-b", "r", {})};
  // GPUs are idle, but r may not use them. Only jobs below r help.
  ExpectYields(specs, 32,
               {{"of a sibling", {{"r-b", "x", 6, 1}, {"default", "y", 8, 1}}, {"r-a", 3}, "x 6>3"},
                {"of nobody",
                 {{"r-b", "x", 6, 6, kInteractive}, {"default", "y", 8, 1}},
                 {"r-a", 3},
                 "",
                 ReclaimOutcome::kNotEnough}});
}

TEST(PlanReclaim, TakesFromJobsOfItsOwnQueueThatComeAfterIt) {
  const std::vector<QueueSpec> specs = {QueueIn("a", "", {.guaranteed = 8})};
  const auto interactive = [](double gpus) { return Needs{"a", gpus, kInteractive}; };
  ExpectYields(
      specs, 8,
      {
          {"surplus of a lower class", {{"a", "x", 8, 4}}, interactive(2), "x 8>6"},
          {"a job of a lower class", {{"a", "x", 4, 4, kUnattended, 9}, {"a", "y", 4, 4}}, interactive(2), "y 4>0"},
          {"a job of lower priority", {{"a", "x", 8, 8, kUnattended, 1}}, {"a", 2, kUnattended, 2}, "x 8>0"},
          {"none of the same", {{"a", "x", 8, 8}}, {"a", 2}, "", ReclaimOutcome::kNotEntitled},
          {"surplus of the same", {{"a", "x", 8, 6}}, {"a", 2}, "x 8>6"},
          {"no surplus of a higher class",
           {{"a", "x", 8, 6, JobClass::kInference}},
           {"a", 2},
           "",
           ReclaimOutcome::kNotEntitled},
      });
}

TEST(PlanReclaim, SaysForWhomAndWhy) {
  const auto to_six = [](YieldReason reason) { return std::vector<Yield>{{"x", 8, 6, reason, "new"}}; };
  const ReclaimPlan for_guarantee = Cluster(kTwoQueues, 8, {{"b", "x", 8, 1}}).Plan({{"a", 2}});
  EXPECT_EQ(for_guarantee.yields, to_six(YieldReason::kGuaranteeOfOther));
  const ReclaimPlan for_share = Cluster({QueueIn("a", "", {})}, 8, {{"default", "x", 8, 1}}).Plan({{"a", 2}});
  EXPECT_EQ(for_share.yields, to_six(YieldReason::kShareOfOther));
  const ReclaimPlan for_own = Cluster({}, 8, {{"default", "x", 8, 1}}).Plan({{"default", 2, kInteractive}});
  EXPECT_EQ(for_own.yields, to_six(YieldReason::kOwnQueue));
}

TEST(PlanReclaim, StopsNoJobOfAQueueThatIsLeftOut) {
  const std::vector<QueueSpec> specs = {QueueIn("a", "", {.guaranteed = 4}),
                                        QueueIn("lost", "nowhere", {.guaranteed = 4})};
  ExpectYields(specs, 8,
               {{"a typing error stops nobody", {{"lost", "x", 8, 1}}, {"a", 4}, "", ReclaimOutcome::kNotEnough}});
}

TEST(PlanReclaim, AsksNobodyForARequestThatCannotStart) {
  std::vector<QueueSpec> specs = {QueueIn("a", "", {.guaranteed = 4, .limit = 6}), QueueIn("b", "", {})};
  const std::vector<Runs> running = {{"b", "x", 8, 1}};
  const auto reason = [&](const Needs& needs) {
    const ReclaimPlan plan = Cluster(specs, 8, running).Plan({needs});
    EXPECT_EQ(TextOf(plan.yields), "");
    EXPECT_EQ(plan.answers[0].outcome, ReclaimOutcome::kRefused);
    return plan.answers[0].refusal.reason;
  };
  EXPECT_EQ(reason({"a", 7}), AdmissionReason::kLimit);
  EXPECT_EQ(reason({"a", 5, kInteractive}), AdmissionReason::kMustBeGuaranteed);
  specs[0].stop = QueueStop::kHold;
  EXPECT_EQ(reason({"a", 2}), AdmissionReason::kHeld);
}

TEST(PlanReclaim, DoesNotDependOnTheOrderOfJobs) {
  std::vector<Runs> running;
  for (int i = 0; i < 12; ++i) running.push_back({"b", "job-" + std::to_string(i), 1 + i % 3, 1, kUnattended, i % 2});
  std::mt19937 random(1);
  const std::string first = TextOf(Cluster(kTwoQueues, 24, running).Plan({{"a", 4}}).yields);
  EXPECT_NE(first, "");
  for (int i = 0; i < 20; ++i) {
    std::ranges::shuffle(running, random);
    EXPECT_EQ(TextOf(Cluster(kTwoQueues, 24, running).Plan({{"a", 4}}).yields), first);
  }
}

TEST(PlanDrain, StopsAllJobsOfAQueueThatComeBack) {
  std::vector<QueueSpec> specs = {QueueIn("a", "", {}), QueueIn("a-1", "a", {}), QueueIn("b", "", {})};
  specs[0].stop = QueueStop::kDrain;
  Cluster cluster(specs, 16,
                  {{"a-1", "x", 4, 1},
                   {"a-1", "interactive", 1, 1, kInteractive},
                   {"b", "y", 4, 1},
                   {.queue = "a-1", .key = "bare", .comes_back = false}});
  EXPECT_EQ(TextOf(PlanDrain(cluster.tree(), cluster.jobs())), "interactive 1>0, x 4>0");
}

}  // namespace
}  // namespace grus

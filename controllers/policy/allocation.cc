// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/allocation.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <optional>
#include <queue>
#include <span>
#include <utility>

#include "controllers/policy/gpu_packing.h"
#include "controllers/policy/size_ladder.h"

namespace grus {
namespace {

// Levels of service are apart by a factor of two: jobs of one level do not preempt each other. This is the first
// border.
constexpr double kFirstLevelGpuSeconds = 4 * 3600;
// What a job is owed of its minimum for its age.
constexpr double kOwedShare = 0.05;
// A job that waits is overdue when it is owed as much as it would be after this time without any service. Once it runs,
// it is until all is paid, so that its turn is worth a restart.
constexpr double kOverdueSeconds = 12 * 3600;
constexpr int kOverdue = -1;
// From here on, a job can be the favoured one. Replays come to much the same with 48 to 96 GPU hours.
constexpr double kLongServedGpuSeconds = 64 * 3600;
constexpr std::size_t kRungsOfAJob = 8;  // A guess that saves moving them.
// How often a gang that is to have its minimum and found no place is put before all others, and everything placed
// again.
constexpr std::size_t kMostRetries = 4;

int WorkersOf(std::span<const NodeWorkers> places) {
  int workers = 0;
  for (const NodeWorkers& place : places) workers += place.workers;
  return workers;
}

// A job in one decision. Those of a decision stand in the order in which they get their minimum, so that an index is
// also a rank.
struct Contender {
  const PoolJob* job = nullptr;
  int current = 0;  // Workers.
  int minimum = 0;  // The smallest legal size; 0: there is none.
  bool has_minimum = false;
  std::span<const Rung> ladder;  // From the minimum on, if it has that.
  std::size_t rung = 0;          // What it is given.
  std::vector<NodeWorkers> places;

  WorkerSet Set(std::size_t at) const { return {ladder[at].workers, job->gpus_per_worker}; }
  WorkerSet Least() const { return {minimum, job->gpus_per_worker}; }
};

int ServiceLevel(const PoolJob& job, bool is_running) {
  const double owed_per_second = kOwedShare * job.min_workers * job.gpus_per_worker;
  const double service = job.attained_gpu_seconds - owed_per_second * job.age_seconds;
  if (service < (is_running ? 0 : -owed_per_second * kOverdueSeconds)) return kOverdue;
  return static_cast<int>(std::log2(1 + std::max(service, 0.0) / kFirstLevelGpuSeconds));
}

// What this order needs of a job, apart from the rest, because most of the time of a sort is moving.
struct Turn {
  int level = 0;
  bool waits = false;
  double age_seconds = 0;
  const PoolJob* job = nullptr;
};

// Overdue jobs first, the oldest before all others: each waits for older ones only, and so none for ever. Then by
// service; of the same level those that run, so that none is stopped for nothing; then the oldest.
bool operator<(const Turn& a, const Turn& b) {
  if (a.level != b.level) return a.level < b.level;
  if (a.level != kOverdue && a.waits != b.waits) return b.waits;
  if (a.age_seconds != b.age_seconds) return a.age_seconds > b.age_seconds;
  return a.job->key < b.job->key;
}

std::vector<Contender> ContendersOf(const AllocationSnapshot& snapshot, const GpuPacking& empty) {
  std::vector<Turn> turns;
  turns.reserve(snapshot.jobs.size());
  for (const PoolJob& job : snapshot.jobs) {
    const bool waits = job.places.empty();
    turns.push_back({ServiceLevel(job, !waits), waits, job.age_seconds, &job});
  }
  std::sort(turns.begin(), turns.end());

  std::vector<Contender> contenders(turns.size());
  for (std::size_t rank = 0; rank < turns.size(); ++rank) {
    const PoolJob& job = *turns[rank].job;
    Contender& contender = contenders[rank];
    contender.job = &job;
    contender.current = WorkersOf(job.places);
    const int per_node = empty.WorkersPerNode(job.gpus_per_worker);
    contender.minimum = per_node > 0 ? NextLegalSize(job, per_node, 0) : 0;
  }
  return contenders;
}

// Gives gangs their minimum, in order, as long as all of them can be packed. Returns the GPUs that are left.
int GiveMinimums(const AllocationSnapshot& snapshot, std::vector<Contender>& contenders) {
  GpuPacking packing(snapshot.nodes);
  for (std::size_t rank = 0; rank < contenders.size() && packing.free_gpus() > 0; ++rank) {
    Contender& contender = contenders[rank];
    const WorkerSet set = contender.Least();
    if (set.workers == 0) continue;
    const auto places = packing.Find(set, {});
    if (!places) continue;
    packing.Take(rank, *places, set.gpus_per_worker);
    contender.has_minimum = true;
  }
  return packing.free_gpus();
}

// The rungs of all ladders. The long-served job of most service is favoured, so that it stays the same one.
std::vector<Rung> BuildLadders(const GpuPacking& empty, std::vector<Contender>& contenders) {
  std::vector<Rung> rungs;
  rungs.reserve(kRungsOfAJob * contenders.size());
  std::vector<std::size_t> ends;
  ends.reserve(contenders.size());
  const PoolJob* favoured = nullptr;
  std::size_t favoured_begin = 0, favoured_end = 0;
  for (const Contender& contender : contenders) {
    const PoolJob& job = *contender.job;
    const std::size_t begin = rungs.size();
    if (contender.has_minimum) {
      AppendLadder(job, contender.current, empty.WorkersPerNode(job.gpus_per_worker), rungs);
      const double most = favoured == nullptr ? kLongServedGpuSeconds : favoured->attained_gpu_seconds;
      if (job.attained_gpu_seconds > most) {
        favoured = &job;
        favoured_begin = begin;
        favoured_end = rungs.size();
      }
    }
    ends.push_back(rungs.size());
  }
  if (favoured != nullptr)
    WeighFavoured(*favoured, std::span(rungs).subspan(favoured_begin, favoured_end - favoured_begin));
  std::size_t begin = 0;
  for (std::size_t rank = 0; rank < contenders.size(); begin = ends[rank++]) {
    contenders[rank].ladder = std::span(rungs).subspan(begin, ends[rank] - begin);
  }
  return rungs;
}

struct Step {
  double gain = 0;  // For each GPU.
  std::size_t rank = 0;
  std::size_t rung = 0;

  friend bool operator<(const Step& a, const Step& b) {  // The worse one.
    return a.gain != b.gain ? a.gain < b.gain : a.rank > b.rank;
  }
};

std::optional<Step> NextStep(const std::vector<Contender>& contenders, std::size_t rank, int free_gpus) {
  const Contender& contender = contenders[rank];
  const std::size_t to = BestStep(contender.ladder, contender.rung, contender.ladder[contender.rung].gpus + free_gpus);
  if (to == contender.rung) return std::nullopt;
  return Step{GainPerGpu(contender.ladder, contender.rung, to), rank, to};
}

// Gives what is left where it gains most.
void ShareGain(std::vector<Contender>& contenders, int free_gpus) {
  std::vector<Step> first;
  for (std::size_t rank = 0; rank < contenders.size(); ++rank) {
    if (!contenders[rank].has_minimum) continue;
    if (const auto step = NextStep(contenders, rank, free_gpus)) first.push_back(*step);
  }
  std::priority_queue<Step> steps({}, std::move(first));
  while (!steps.empty() && free_gpus > 0) {
    const Step step = steps.top();
    steps.pop();
    Contender& contender = contenders[step.rank];
    const int more = contender.ladder[step.rung].gpus - contender.ladder[contender.rung].gpus;
    if (more <= free_gpus) {
      free_gpus -= more;
      contender.rung = step.rung;
    }
    if (const auto next = NextStep(contenders, step.rank, free_gpus)) steps.push(*next);
  }
}

class Placer {
 public:
  Placer(const AllocationSnapshot& snapshot, std::vector<Contender>& contenders)
      : snapshot_(snapshot), contenders_(contenders) {}

  void Run() {
    std::vector<std::size_t> urgent;  // Placed before all others, at their minimum.
    while (const auto homeless = Try(urgent)) {
      if (urgent.size() == kMostRetries) break;
      urgent.insert(std::upper_bound(urgent.begin(), urgent.end(), *homeless), *homeless);
    }
  }

 private:
  // Returns the first gang that is to have its minimum and for which no place was found.
  std::optional<std::size_t> Try(const std::vector<std::size_t>& urgent) {
    packing_.emplace(snapshot_.nodes);
    for (Contender& contender : contenders_) contender.places.clear();
    for (const std::size_t rank : urgent) Put(rank, 0);

    std::vector<std::size_t> changed;
    for (std::size_t rank = 0; rank < contenders_.size(); ++rank) {
      const Contender& contender = contenders_[rank];
      if (!contender.has_minimum || !contender.places.empty()) continue;
      if (contender.ladder[contender.rung].workers != contender.current || !Keep(rank)) changed.push_back(rank);
    }
    std::stable_sort(changed.begin(), changed.end(), [&](std::size_t a, std::size_t b) { return Gpus(a) > Gpus(b); });
    std::optional<std::size_t> homeless;
    for (const std::size_t rank : changed) {
      if (!PutOrShrink(rank)) homeless = std::min(homeless.value_or(rank), rank);
    }
    return homeless;
  }

  int Gpus(std::size_t rank) const { return contenders_[rank].ladder[contenders_[rank].rung].gpus; }

  bool Keep(std::size_t rank) {
    Contender& contender = contenders_[rank];
    const PoolJob& job = *contender.job;
    if (job.places.empty() || !packing_->HasRoom(job.places, job.gpus_per_worker)) return false;
    packing_->Take(rank, job.places, job.gpus_per_worker);
    contender.places = job.places;
    return true;
  }

  bool Put(std::size_t rank, std::size_t rung) {
    Contender& contender = contenders_[rank];
    auto places = packing_->Find(contender.Set(rung), contender.job->places);
    if (!places) return false;
    packing_->Take(rank, *places, contender.job->gpus_per_worker);
    contender.places = *std::move(places);
    return true;
  }

  bool PutAfterMoves(std::size_t rank, std::size_t rung) {
    const auto moves = packing_->MakeRoom(contenders_[rank].Set(rung));
    if (!moves) return false;
    for (const GpuPacking::Move& move : *moves) contenders_[move.job].places = {move.to};
    return Put(rank, rung);
  }

  // As large as it should be if small jobs can be moved together for it; else as it is now, or as large as it can be.
  bool PutOrShrink(std::size_t rank) {
    const Contender& contender = contenders_[rank];
    if (Put(rank, contender.rung) || PutAfterMoves(rank, contender.rung)) return true;
    if (contender.current >= contender.minimum && contender.current < contender.ladder[contender.rung].workers &&
        Keep(rank)) {
      return true;
    }
    for (std::size_t rung = contender.rung; rung-- > 0;) {
      if (Put(rank, rung)) return true;
    }
    return contender.rung > 0 && PutAfterMoves(rank, 0);
  }

  const AllocationSnapshot& snapshot_;
  std::vector<Contender>& contenders_;
  std::optional<GpuPacking> packing_;
};

GrantReason ReasonFor(const Contender& contender, int to, bool can_fit) {
  const int from = contender.current;
  if (to == 0) {
    if (!can_fit) return GrantReason::kCannotFit;
    return from > 0 ? GrantReason::kPreempted : GrantReason::kWaiting;
  }
  if (from == 0) return GrantReason::kStarted;
  if (to != from) return to > from ? GrantReason::kGrown : GrantReason::kShrunk;
  return contender.places == contender.job->places ? GrantReason::kKept : GrantReason::kMoved;
}

}  // namespace

std::string_view ToString(GrantReason reason) {
  switch (reason) {
    case GrantReason::kKept: return "Kept";
    case GrantReason::kStarted: return "Started";
    case GrantReason::kGrown: return "Grown";
    case GrantReason::kShrunk: return "Shrunk";
    case GrantReason::kMoved: return "Moved";
    case GrantReason::kPreempted: return "Preempted";
    case GrantReason::kWaiting: return "Waiting";
    case GrantReason::kCannotFit: return "CannotFit";
  }
  return "";
}

std::vector<Grant> Allocate(const AllocationSnapshot& snapshot) {
  const GpuPacking empty(snapshot.nodes);
  std::vector<Contender> contenders = ContendersOf(snapshot, empty);
  const int left = GiveMinimums(snapshot, contenders);
  const std::vector<Rung> rungs = BuildLadders(empty, contenders);
  ShareGain(contenders, left);
  Placer(snapshot, contenders).Run();

  std::vector<Grant> plan(contenders.size());
  for (Contender& contender : contenders) {
    Grant& grant = plan[static_cast<std::size_t>(contender.job - snapshot.jobs.data())];
    grant.job = contender.job->key;
    grant.from = contender.current;
    grant.to = WorkersOf(contender.places);
    const bool can_fit = grant.to > 0 || (contender.minimum > 0 && empty.Find(contender.Least(), {}).has_value());
    grant.reason = ReasonFor(contender, grant.to, can_fit);
    grant.places = std::move(contender.places);
  }
  return plan;
}

}  // namespace grus

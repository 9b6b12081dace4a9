// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/size_planner.h"

#include <algorithm>

#include "controllers/queues/queue_admission.h"

namespace grus {
namespace {

constexpr double kResizesBetweenLooks = 3;  // A look costs little, and so does a resize that comes so late.

// Of the pods of the job on the node, those that are workers: the launcher is an owner of its own.
int WorkersOn(const LedgerNode& node, OwnerId owner) {
  const NodeUse* use = owner == 0 ? nullptr : node.FindUse(owner);
  return use == nullptr ? 0 : use->pods;
}

// Leaves `budget` free GPUs: where jobs are already, and else on the nodes with most. A job that grows wants few nodes.
void LimitFree(std::vector<PoolNode>& nodes, const std::vector<int>& free, std::int64_t budget) {
  std::int64_t excess = -budget;
  for (const int gpus : free) excess += gpus;
  std::vector<std::size_t> order(nodes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const bool has_a = nodes[a].gpus > free[a], has_b = nodes[b].gpus > free[b];
    return has_a != has_b ? has_b : free[a] < free[b];
  });
  for (const std::size_t node : order) {
    if (excess <= 0) return;
    const auto less = static_cast<int>(std::min<std::int64_t>(excess, free[node]));
    nodes[node].gpus -= less;
    excess -= less;
  }
}

}  // namespace

AllocationSnapshot SizePlanner::SnapshotOf(QueueIndex queue, PoolIndex pool, std::span<const SizedJob> jobs,
                                           std::int64_t now) const {
  AllocationSnapshot snapshot;
  std::vector<int> free;
  std::vector<OwnerId> owners;
  for (const SizedJob& job : jobs) owners.push_back(ledger_.FindOwner(job.owner));
  std::vector<std::vector<NodeWorkers>> places(jobs.size());
  const std::string& name = queues_.tree().PoolAt(pool).name;
  for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
    const LedgerNode* node = ledger_.NodeAt(id);
    if (node == nullptr || node->state.pool != name) continue;
    const std::int64_t all = queues_.MilliOf(node->state.allocatable, pool) / kOneGpu,
                       used = (queues_.MilliOf(node->Taken(), pool) + kOneGpu - 1) / kOneGpu;
    const bool is_open = node->is_known && !node->state.is_cordoned && node->state.taints.empty();
    int held = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const int workers = WorkersOn(*node, owners[i]);
      if (workers == 0) continue;
      places[i].push_back({snapshot.nodes.size(), workers});
      held += workers * jobs[i].gpus_per_worker;
    }
    const auto here = is_open ? static_cast<int>(std::max<std::int64_t>(0, all - used)) : 0;
    if (held + here == 0) continue;
    snapshot.nodes.push_back({node->state.name, held + here});
    free.push_back(here);
  }
  LimitFree(snapshot.nodes, free, HeadroomOf(queues_.use(), queue, pool) / kOneGpu);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Holder& holder = queues_.HolderOf(jobs[i].owner);
    PoolJob& job = snapshot.jobs.emplace_back();
    job.key = jobs[i].owner;
    job.min_workers = std::max(1, holder.min_workers);
    job.max_workers = std::max(job.min_workers, holder.wanted_workers);
    job.gpus_per_worker = jobs[i].gpus_per_worker;
    job.curve = *holder.curve;
    job.places = std::move(places[i]);
    job.attained_gpu_seconds = holder.attained_gpu_seconds;
    job.age_seconds = static_cast<double>(std::max<std::int64_t>(0, now - holder.queued_since));
    job.resizes = holder.resizes;
    job.resize_cost_seconds = resize_seconds_;
  }
  return snapshot;
}

void SizePlanner::Decide(const AllocationSnapshot& snapshot, std::int64_t now, Targets& targets) {
  const std::vector<Grant> grants = Allocate(snapshot);
  const auto grower = std::ranges::max_element(grants, {}, [](const Grant& grant) { return grant.to - grant.from; });
  for (const Grant& grant : grants) {
    const std::string owner(grant.job);
    const Holder& holder = queues_.HolderOf(owner);
    const int to = std::max({grant.to, holder.min_workers, 1});
    targets[owner] = to;
    const bool may_yield = holder.workers > to && grower->to > grower->from && !queues_.yields().contains(owner) &&
                           now - holder.running_since >= queues_.MinimumRuntimeOf(owner);
    if (!may_yield) continue;
    queues_.SetYield(owner, YieldNotice{to, YieldReason::kWorthMore, std::string(grower->job), now});
    told_.push_back(owner);
  }
}

std::optional<double> SizePlanner::LookAgainSeconds() const {
  return has_jobs_ ? std::optional(kResizesBetweenLooks * resize_seconds_) : std::nullopt;
}

std::vector<std::string> SizePlanner::Update(std::int64_t now) {
  Targets targets;
  if (queues_.is_active()) {
    std::map<std::pair<QueueIndex, PoolIndex>, std::vector<SizedJob>> groups;
    for (SizedJob& job : queues_.SizedJobs()) groups[{job.queue, job.pool}].push_back(std::move(job));
    for (const auto& [at, jobs] : groups) Decide(SnapshotOf(at.first, at.second, jobs, now), now, targets);
  }
  has_jobs_ = !targets.empty();
  std::vector<std::string> changed = std::exchange(told_, {});
  for (const auto& [owner, to] : targets) {
    if (queues_.TargetOf(owner) != to) changed.push_back(owner);
  }
  for (const auto& [owner, to] : queues_.targets()) {
    if (!targets.contains(owner)) changed.push_back(owner);
  }
  queues_.SetTargets(std::move(targets));
  return changed;
}

}  // namespace grus

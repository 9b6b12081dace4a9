// SPDX-License-Identifier: Apache-2.0
// The part of ClusterAccount that decides which places must be protected, by what the scheduler could do with them.
#include <algorithm>

#include "controllers/cluster/cluster_account.h"
#include "controllers/cluster/owners.h"
#include "controllers/policy/node_match.h"
#include "controllers/policy/reservation_keeper.h"

namespace grus {
namespace {

// Whether the launcher would find no room if workers filled each node that suits it as far as they could.
bool CouldShutOutLauncher(const ClusterLedger& ledger, const std::string& job) {
  const std::string launcher_owner = LauncherOwner(job);
  const std::vector<Place>&workers = ledger.PlacesOf(job), &launchers = ledger.PlacesOf(launcher_owner);
  if (workers.empty() || launchers.empty()) return false;
  const PodShape &worker = *workers.front().shape, &launcher = *launchers.front().shape;
  if (launcher.has_pod_constraints()) return true;
  const OwnerId owners[] = {ledger.FindOwner(job), ledger.FindOwner(launcher_owner)};
  for (NodeId id = 0; id < ledger.node_limit(); ++id) {
    const LedgerNode* node = ledger.NodeAt(id);
    if (node == nullptr || !node->is_known || !Accepts(node->state, launcher)) continue;
    const Resources& all = node->state.allocatable;
    Resources used = node->used;
    for (const OwnerId owner : owners) {
      if (const NodeUse* use = node->FindUse(owner)) used -= use->unbound;
    }
    const int most =
        Accepts(node->state, worker) ? CopiesThatFit(all, used, worker.request, static_cast<int>(workers.size())) : 0;
    Resources of_workers = worker.request;
    of_workers *= most;
    used += of_workers;
    if (CopiesThatFit(all, used, launcher.request, 1) > 0) return false;
  }
  return true;
}

}  // namespace

std::string ClusterAccount::ReservedFrom(const std::string& owner, const PodShape& shape) const {
  std::lock_guard lock(mutex_);
  return planner_.reservations().ReservedFrom(owner, shape);
}

bool ClusterAccount::MustProtect(const std::string& gang) {
  if (nominations_ != Nominations::kAuto) return nominations_ != Nominations::kNever;
  std::lock_guard lock(mutex_);
  const std::vector<Place>& own = ledger_.PlacesOf(gang);
  if (own.empty()) return false;
  // A scheduler sees the sum over a node's GPUs, but for claims: elsewhere a pod might find no single one with room.
  if (std::ranges::any_of(own, [](const Place& place) { return !place.ToldGpu().empty(); })) return true;
  if (competition_.Threatens(gang, clock_.Now())) {
    if (const auto placed = placed_.find(gang); placed != placed_.end()) placed->second = true;
    return true;
  }
  const auto is_other = [&](const Place& place) {
    return place.shape != own.front().shape && !FitAlike(*place.shape, *own.front().shape);
  };
  if (std::ranges::any_of(own, is_other)) return true;
  if (!planner_.reservations().ReservedFrom(gang, *own.front().shape).empty() || CouldShutOutLauncher(ledger_, gang))
    return true;
  return std::ranges::any_of(
      placed_, [&](const auto& other) { return std::ranges::any_of(ledger_.PlacesOf(other.first), is_other); });
}

bool ClusterAccount::SharesNodes(const std::string& gang) const {
  if (nominations_ != Nominations::kAuto) return false;
  std::lock_guard lock(mutex_);
  const OwnerId id = ledger_.FindOwner(gang);
  return std::ranges::any_of(ledger_.PlacesOf(gang), [&](const Place& place) {
    const std::string_view device = place.shape->request.Accelerator();
    const LedgerNode* node = ledger_.FindNode(place.node);
    if (device.empty() || node == nullptr) return false;
    return node->FindUse(id)->held.Extended(device) < node->state.allocatable.Extended(device);
  });
}

Safety ClusterAccount::Check(const std::string& gang, const std::vector<Place>& places, int priority,
                             kube::TimePoint since) const {
  std::lock_guard lock(mutex_);
  for (const Place& place : places) {
    const LedgerNode* node = ledger_.FindNode(place.node);
    if (node == nullptr) return Safety::kTaken;
    // Places are part of `used`: if one no longer fits beside the rest, somebody else took its room.
    Resources others = node->used;
    others -= place.Request();
    if (!node->CanHold(*place.shape, others)) return Safety::kTaken;
  }
  const bool is_at_one = competition_.MayTakeOneOf(places, gang, priority, since, clock_.Now());
  return is_at_one ? Safety::kUndecided : Safety::kSafe;
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The part of ClusterAccount that plans: who waits, who is placed, and who is told.
#include <algorithm>
#include <chrono>

#include "controllers/cluster/cluster_account.h"
#include "controllers/policy/reservation_keeper.h"

namespace grus {

void ClusterAccount::Enqueue(const GangDemand& demand) {
  std::lock_guard lock(mutex_);
  planner_.Put(demand);
}

GangStanding ClusterAccount::Ask(const GangDemand& demand) {
  std::call_once(has_begun_, [this] {
    TellBeforePlanning();
    std::lock_guard lock(mutex_);
    has_planned_ = true;
    competition_.ForgetOwners();
  });
  GangStanding standing;
  Apply([&](Effects& effects) {
    planner_.Put(demand);
    metrics_.NoteDemand(demand);
    PlanLocked(demand.key, effects);
    if (const GangStanding* found = planner_.StandingOf(demand.key)) standing = *found;
    if (standing.is_placed) {
      waiting_.erase(demand.key);
      metrics_.NoteNoDemand(demand.key);
      planner_.Remove(demand.key);  // The caller knows now: the same demand again is a new one.
    } else {
      waiting_.insert(demand.key);
    }
  });
  return standing;
}

void ClusterAccount::PlanLocked(const std::string& asking, Effects& effects) {
  const std::uint64_t ended = planner_.reservations().ended(), passes = planner_.passes();
  const kube::TimePoint began = clock_.Now();
  const std::vector<std::string> changed = planner_.Plan(UnixSeconds());
  if (planner_.passes() != passes) metrics_.NoteDecision(AccountMetrics::Decision::kStarts, began);
  effects.has_freed |= planner_.reservations().ended() != ended;
  effects.has_used |= !changed.empty();
  for (const std::string& key : changed) {
    const GangStanding* other = planner_.StandingOf(key);
    const bool is_placed = other && other->is_placed;
    if (is_placed) {
      placed_.try_emplace(key);
      metrics_.NotePlaced(key);
    }
    if (other && !is_placed) waiting_.insert(key);
    else waiting_.erase(key);
    const bool is_urgent = is_placed || (other && other->has_reservation);
    if (key != asking) (is_urgent ? effects.urgent : effects.stale).push_back(key);
  }
  effects.yielding = planner_.TakeToldToYield();
  metrics_.NoteNotices(effects.yielding);
}

void ClusterAccount::StopAsking(const std::string& gang) {
  Apply([&](Effects& effects) {
    planner_.Remove(gang);
    metrics_.NoteNoDemand(gang);
    effects.has_freed = waiting_.erase(gang) > 0;  // Others may start now, or ask in its place.
  });
}

void ClusterAccount::Forget(const std::string& gang) {
  Apply([&](Effects& effects) {
    planner_.Remove(gang);
    metrics_.NoteNoDemand(gang);
    placed_.erase(gang);
    effects.has_freed = waiting_.erase(gang) > 0 || !ledger_.PlacesOf(gang).empty();
    ledger_.DropPlaces(gang);
  });
}

void ClusterAccount::SetEnd(const std::string& gang, std::optional<std::int64_t> unix_seconds) {
  std::lock_guard lock(mutex_);
  planner_.SetEnd(gang, unix_seconds);
}

std::optional<kube::Duration> ClusterAccount::TimeUntilChange(const std::string& gang) const {
  std::lock_guard lock(mutex_);
  const std::optional<std::int64_t> change = planner_.next_change(gang);
  if (!change) return std::nullopt;
  return std::max<kube::Duration>(kube::WallTime(std::chrono::seconds(*change)) - clock_.WallNow(),
                                  std::chrono::seconds(1));
}

std::string ClusterAccount::AnyWaiting() const {
  std::lock_guard lock(mutex_);
  return waiting_.empty() ? std::string() : *waiting_.begin();
}

bool ClusterAccount::IsAnyoneWaiting(const std::function<bool(const std::string& gang)>& counts) const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(waiting_, counts) || competition_.DoesAnyoneWaitForDevice();
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gang_planner.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "controllers/policy/gang_placer.h"
#include "controllers/policy/gang_standing.h"
#include "controllers/policy/gang_turns.h"
#include "controllers/policy/planned_gang.h"
#include "controllers/policy/reservation_keeper.h"
#include "controllers/policy/yield_planner.h"

namespace grus {
namespace {

// What nobody tells us of changes within this time: jobs that had no right to yield get it with time.
constexpr std::int64_t kSweepSeconds = 10;

}  // namespace

struct GangPlanner::Impl {
  ClusterLedger& ledger;
  std::optional<ClusterQueues> no_queues;  // If it was given none.
  ClusterQueues& queues;
  YieldPlanner yields{queues,
                      [this](const std::string& owner, std::span<const Yield> more) { return WouldHelp(owner, more); },
                      [this](const std::string& owner, const std::set<std::string>& may_yield) {
                        return OwnersInTheWay(gangs.at(owner), may_yield, ledger);
                      }};
  std::vector<std::string> told;  // Owners whose notice has changed.
  std::unordered_map<std::string, PlannedGang> gangs;
  std::map<GangRank, PlannedGang*> queue;  // Those that wait.
  std::vector<std::string> changed;
  std::vector<PlannedGang*> in_order;  // Those that wait, in the order of the last plan.
  ReservationKeeper reservation;
  GangPlacer placer{ledger, queues, reservation};

  bool is_dirty = true;
  std::uint64_t passes = 0;
  std::uint64_t planned_version = 0;
  std::uint64_t planned_setup = 0;  // The version of the queues then.
  std::int64_t planned_at = 0, swept_at = 0;

  Impl(ClusterLedger& l, ClusterQueues* q, std::int64_t after)
      : ledger(l), queues(q ? *q : no_queues.emplace(l)), reservation(l, after) {}

  // Whether it would have room where it may run, once these and all that have a notice have yielded.
  bool WouldHelp(const std::string& owner, std::span<const Yield> more) const {
    const auto it = gangs.find(owner);
    std::set<OwnerId> yielding;
    for (const Yield& yield : more) yielding.insert(ledger.FindOwner(yield.job));
    for (const auto& [job, notice] : queues.yields()) yielding.insert(ledger.FindOwner(job));
    return it != gangs.end() && HasRoomWithout(it->second, yielding, ledger);
  }

  // The search failed although there is room: constraints between pods are in the way.
  static bool LacksOnlyAPlace(const PlannedGang& gang) { return gang.searched && gang.is_constrained; }

  // A gang that lacks only a place that suits other pods gets no reservation: emptying nodes may not help it. Nor does
  // one for which the search would miss a place on empty nodes.
  bool MayReserve(const PlannedGang& gang, std::int64_t now) const {
    return !gang.IsExtra() && gang.is_entitled && !gang.standing.can_never_fit && !gang.in_pool().is_missed &&
           !LacksOnlyAPlace(gang) && !reservation.IsTaken(gang) &&
           now >= reservation.ReservesFrom(gang.demand, planned_at);
  }

  void Erase(const std::string& key) {
    const auto it = gangs.find(key);
    if (it == gangs.end()) return;
    queue.erase(it->second.rank);
    std::erase(in_order, &it->second);
    gangs.erase(it);
    is_dirty = true;
  }

  // Those that wait, as the turns see them; `waiting` has the gangs.
  std::vector<GangTurns::Entry> EntriesOf(const std::vector<PlannedGang*>& waiting) {
    std::vector<GangTurns::Entry> entries(waiting.size());
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      PlannedGang& gang = *waiting[i];
      Prepare(gang);
      if (!queues.is_active()) continue;
      // Members beyond the minimum of one that runs, and what can never start, keep nobody waiting.
      entries[i].may_block = !gang.IsExtra() && !gang.standing.can_never_fit;
      entries[i].queue = gang.queue;
      entries[i].needs = NeedsOf(gang, gang.in_pool());
      if (entries[i].needs.empty()) entries[i].needs.push_back({0, 0});  // Everybody has a turn.
    }
    return entries;
  }

  // Brings it up to date with the queues. False: none may start it.
  bool Prepare(PlannedGang& gang) {
    if (gang.setup_version != queues.version()) {
      MakeVariants(gang, ledger, queues);
      reservation.ForgetIndexes();
    }
    gang.queue = kNoQueue;
    if (!queues.is_active()) return true;
    const kube::Result<QueueIndex> of = queues.QueueOf(gang.demand.key);
    if (of) gang.queue = *of;
    return of.ok();
  }

  bool TryToPlace(PlannedGang& gang, std::int64_t now) {
    if (!placer.Place(gang, now)) return false;
    changed.push_back(gang.demand.key);
    queue.erase(gang.rank);
    return true;
  }

  // Those for which others yielded go first: their GPUs are kept for them. They leave alone what is reserved, if they
  // can.
  void PlaceClaimants(std::int64_t now) {
    queues.tree();  // Counts anew, if needed: that may drop claims.
    for (const auto& [key, claim] : std::map(queues.claims())) {
      const auto it = gangs.find(key);
      if (it == gangs.end() || !queue.contains(it->second.rank) || !Prepare(it->second)) continue;
      PlannedGang& gang = it->second;
      UpdateCapacity(gang, ledger, false);
      if (!TryToPlace(gang, now) && reservation.Meet(gang)) {
        placer.ChargeReservations();
        TryToPlace(gang, now);
      }
    }
  }

  // Whether the queue of a gang has a right to what it uses with the room that is kept for that gang.
  bool IsDueTo(const std::string& owner, PoolIndex pool) {
    const kube::Result<QueueIndex> of = queues.QueueOf(owner);
    if (!queues.is_active() || !of || pool == kNoPool || pool >= queues.tree().pool_count()) return false;
    const std::int64_t right = std::max(queues.tree().QuotaOf(*of, pool).guaranteed, yields.ShareOf(*of, pool));
    return queues.use().used(*of, pool) <= right;
  }

  // False: the turn of a gang ended.
  bool PlaceInTurn(std::int64_t now) {
    placer.ChargeReservations();
    reservation.Begin([this](const std::string& owner, PoolIndex pool) { return IsDueTo(owner, pool); });
    if (queues.is_active()) PlaceClaimants(now);
    std::vector<PlannedGang*> waiting;
    for (const auto& [rank, gang] : queue) waiting.push_back(gang);
    const std::vector<GangTurns::Entry> entries = EntriesOf(waiting);
    GangTurns turns_of_queues(queues, entries);
    in_order.clear();
    std::vector<PlannedGang*> behind;
    while (const std::optional<std::size_t> next = turns_of_queues.Next()) {
      PlannedGang& gang = *waiting[*next];
      const bool is_behind = IsBehindReservation(gang);
      if (is_behind) behind.push_back(&gang);
      const bool is_placed = !is_behind && TryInTurn(gang, now);
      turns_of_queues.Tried(*next, is_placed);
      if (!is_placed && !is_behind && !ReserveInTurn(gang, now)) return false;
    }
    for (PlannedGang* gang : behind) {
      if (!TryInTurn(*gang, now) && !ReserveInTurn(*gang, now)) return false;
    }
    reservation.Finish();
    return true;
  }

  bool TryInTurn(PlannedGang& gang, std::int64_t now) {
    if (reservation.Meet(gang)) placer.ChargeReservations();
    UpdateCapacity(gang, ledger, false);
    return !queues.claims().contains(gang.demand.key) && TryToPlace(gang, now);
  }

  // Of one that has to wait. False: the turn of a gang ended.
  bool ReserveInTurn(PlannedGang& gang, std::int64_t now) {
    gang.was_tried = true;
    in_order.push_back(&gang);
    bool has_it = MayReserve(gang, now);
    if (has_it) {
      UpdateCapacity(gang, ledger, true);
      has_it = MayReserve(gang, now) && reservation.Reserve(gang, QueryOf(gang, gang.in_pool(), ledger), now);
    }
    if (has_it || reservation.Drop(gang.demand.key)) placer.ChargeReservations();
    if (!has_it || !reservation.EndTurn(gang.demand.key, now)) return true;
    reservation.End(gang.demand.key);
    return false;
  }

  // One before it in its queue has a reservation, and the guarantee of the queue is not enough for both: else those
  // behind would keep the queue at its guarantee, and a large gang would never be within it.
  bool IsBehindReservation(const PlannedGang& gang) {
    const std::string& owner = reservation.OwnerBefore(gang);
    if (owner.empty() || gang.queue == kNoQueue) return false;
    const auto before = gangs.find(owner);
    const std::vector<PoolNeed> needs = NeedsOf(gang, gang.in_pool());
    if (before == gangs.end() || needs.empty()) return false;
    const PoolIndex pool = needs.front().pool;
    if (pool == kNoPool || !queues.tree().IsShared(pool)) return false;
    return queues.use().used(gang.queue, pool) + RestOf(before->second).milli + needs.front().milli >
           queues.tree().QuotaOf(gang.queue, pool).guaranteed;
  }

  // Gangs that had no turn come after all others.
  void FindUntried() {
    if (in_order.size() == queue.size()) return;
    std::set<const PlannedGang*> tried(in_order.begin(), in_order.end());
    std::map<QueueIndex, std::string> blockers;  // Of each queue the last that had a turn.
    for (const PlannedGang* gang : in_order) blockers[gang->queue] = gang->demand.key;
    for (const auto& [rank, gang] : queue) {
      if (tried.contains(gang)) continue;
      UpdateCapacity(*gang, ledger, false);
      gang->searched.reset();
      gang->is_entitled = gang->was_tried = false;
      gang->is_changed |= Update(gang->standing.queue_refusal, WhyNoTurn(*gang, blockers[gang->queue], queues));
      in_order.push_back(gang);
    }
  }

  // Asks for GPUs of others for those that wait.
  void PlanYields(std::int64_t now) {
    if (!queues.is_active()) return;
    std::vector<WaitingDemand> requests;
    for (const PlannedGang* gang : in_order) {
      const bool may_ask = gang->was_tried && gang->queue != kNoQueue && !gang->IsExtra();
      if (!may_ask || gang->standing.can_never_fit || IsBehindReservation(*gang)) continue;
      WaitingDemand rest = RestOf(*gang);
      if (rest.milli > 0) requests.push_back(std::move(rest));
    }
    for (std::string& owner : yields.Update(requests, now)) told.push_back(std::move(owner));
  }

  // Without what is kept for it.
  WaitingDemand RestOf(const PlannedGang& gang) const {
    WaitingDemand demand = DemandOf(gang);
    if (const auto kept = ChargeOf(queues.reserved(), demand.owner)) demand.milli -= kept->milli;
    return demand;
  }

  static WaitingDemand DemandOf(const PlannedGang& gang) {
    const std::vector<PoolNeed> needs = NeedsOf(gang, gang.in_pool());
    WaitingDemand demand{.owner = gang.demand.key, .queue = gang.queue, .since = gang.demand.waiting_since};
    if (!needs.empty()) demand.pool = needs.front().pool, demand.milli = needs.front().milli;
    return demand;
  }

  std::optional<std::int64_t> ChangeOf(const GangDemand& demand) const {
    if (reservation.IsOwner(demand.key)) return reservation.NextChange(demand.key, planned_at);
    std::optional<std::int64_t> at = reservation.ReservesFrom(demand, planned_at);
    if (demand.needed <= 0 || *at <= planned_at) at.reset();
    const std::int64_t sweep = planned_at + kSweepSeconds;
    return queues.is_active() ? std::min(at.value_or(sweep), sweep) : at;
  }

  // Whether the next change of a gang is due. Those that wait behind the reservation of their pool have none.
  bool IsDue(std::int64_t now) const {
    const auto is_due = [&](const PlannedGang& gang) {
      const std::optional<std::int64_t> at = ChangeOf(gang.demand);
      return at && *at <= now;
    };
    return std::ranges::any_of(queue, [&](const auto& entry) {
      const PlannedGang& gang = *entry.second;
      return (!reservation.HasOwner(gang) || reservation.IsOwner(gang.demand.key)) && is_due(gang);
    });
  }

  bool MustSweep(std::int64_t now) const {
    const bool is_late = now - swept_at >= kSweepSeconds || now < swept_at;
    return planned_setup != queues.version() || (queues.is_active() && is_late);
  }

  void DescribeAll() {
    FactsCache facts(ledger);
    std::map<QueueIndex, int> positions;  // By queue.
    for (PlannedGang* gang : in_order) {
      GangStanding& standing = gang->standing;
      const bool is_reserved_for_it = reservation.IsOwner(gang->demand.key);
      GangToPlace query = QueryOf(*gang, gang->in_pool(), ledger);
      query.may_use = reservation.RoomOf(gang->demand.key);
      bool is_new = std::exchange(gang->is_changed, false);
      const bool has_place = gang->queue != kNoQueue || !queues.is_active();
      is_new |= Update(standing.position, has_place ? ++positions[gang->queue] : 0);
      is_new |= Describe(ledger, query, gang->searched, facts, standing);
      is_new |= Update(standing.yields, queues.is_active() ? yields.AnswerTo(gang->demand.key) : std::nullopt);
      is_new |= Update(standing.has_reservation, is_reserved_for_it);
      const std::int64_t rests_until = reservation.RestsUntil(gang->demand.key, planned_at);
      const bool rests = !gang->IsExtra() && !standing.can_never_fit && rests_until > planned_at;
      is_new |= Update(standing.reserves_from, rests ? std::optional(rests_until) : std::nullopt);
      is_new |= Update(standing.expected_start, reservation.StartOf(gang->demand.key));
      const bool may_be_blocked = !is_reserved_for_it && !LacksOnlyAPlace(*gang) && standing.fitting < gang->needed();
      const std::string& blocker = may_be_blocked ? reservation.BlockerOf(*gang) : reservation.Nobody();
      is_new |= Update(standing.blocked_by, blocker.empty() ? ClaimantBefore(*gang, queues) : blocker);
      if (is_new) changed.push_back(gang->demand.key);
    }
  }
};

GangPlanner::GangPlanner(ClusterLedger& ledger, std::int64_t reserve_after_seconds, ClusterQueues* queues)
    : impl_(std::make_unique<Impl>(ledger, queues, reserve_after_seconds)) {}
GangPlanner::~GangPlanner() = default;

void GangPlanner::Put(GangDemand demand) {
  const auto it = impl_->gangs.find(demand.key);
  if (it != impl_->gangs.end()) {
    if (it->second.demand == demand) return;
    impl_->Erase(demand.key);
  }
  if (demand.members.empty()) return;
  PlannedGang& gang = impl_->gangs[demand.key];
  gang.demand = std::move(demand);
  gang.rank = RankOf(gang.demand, impl_->queues);
  MakeVariants(gang, impl_->ledger, impl_->queues);
  impl_->reservation.ForgetIndexes();
  impl_->queue.emplace(gang.rank, &gang);
  if (impl_->reservation.IsOwner(gang.demand.key)) impl_->reservation.LookAgain();  // Its needs may have changed.
  impl_->is_dirty = true;
}

void GangPlanner::Remove(const std::string& key) {
  impl_->Erase(key);
  impl_->reservation.End(key);
}

void GangPlanner::Rerank(const std::string& key) {
  // Only where there are queues do those that run matter to those that wait.
  impl_->is_dirty |= impl_->queues.is_active();
  const auto it = impl_->gangs.find(key);
  if (it == impl_->gangs.end() || impl_->queue.erase(it->second.rank) == 0) return;
  impl_->is_dirty = true;
  it->second.rank = RankOf(it->second.demand, impl_->queues);
  impl_->queue.emplace(it->second.rank, &it->second);
}

void GangPlanner::SetEnd(const std::string& key, std::optional<std::int64_t> at) {
  if (impl_->reservation.SetEnd(key, at)) impl_->is_dirty = true;
}

std::vector<std::string> GangPlanner::Plan(std::int64_t now) {
  Impl& impl = *impl_;
  const bool is_needed =
      impl.is_dirty || impl.planned_version != impl.ledger.version() || impl.IsDue(now) || impl.MustSweep(now);
  impl.planned_at = now;
  if (!is_needed) return {};
  ++impl.passes;
  impl.changed.clear();
  while (!impl.PlaceInTurn(now)) {  // Again: the reserved room is free for all gangs now.
  }
  impl.FindUntried();
  impl.PlanYields(now);
  impl.DescribeAll();
  impl.is_dirty = false;
  impl.swept_at = now;
  impl.planned_setup = impl.queues.version();
  impl.planned_version = impl.ledger.version();
  return std::exchange(impl.changed, {});
}

std::uint64_t GangPlanner::passes() const { return impl_->passes; }

std::vector<std::string> GangPlanner::TakeToldToYield() { return std::exchange(impl_->told, {}); }

std::vector<WaitingDemand> GangPlanner::Waiting() const {
  std::vector<WaitingDemand> waiting;
  for (const PlannedGang* gang : impl_->in_order) {
    if (gang->IsExtra()) continue;  // The gang itself runs.
    WaitingDemand& wait = waiting.emplace_back(Impl::DemandOf(*gang));
    wait.reason = gang->standing.is_hopeless() ? "CannotFit" : gang->is_entitled ? "WaitingForRoom" : "WaitingForQueue";
  }
  return waiting;
}

const GangStanding* GangPlanner::StandingOf(const std::string& key) const {
  const auto it = impl_->gangs.find(key);
  return it == impl_->gangs.end() ? nullptr : &it->second.standing;
}

std::size_t GangPlanner::waiting() const { return impl_->queue.size(); }

const ReservationKeeper& GangPlanner::reservations() const { return impl_->reservation; }

std::optional<std::int64_t> GangPlanner::next_change(const std::string& key) const {
  const auto it = impl_->gangs.find(key);
  return it == impl_->gangs.end() ? std::nullopt : impl_->ChangeOf(it->second.demand);
}

}  // namespace grus

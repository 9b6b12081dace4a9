// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/competition.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "controllers/policy/node_match.h"
#include "controllers/policy/waited.h"

namespace grus {
namespace {

constexpr kube::Duration kCompetitionLasts = std::chrono::minutes(10);
// The longest that the scheduler takes over one pod, including the provisioning of volumes: by then, it has decided on
// all that it began before it saw a nomination.
constexpr kube::Duration kLongestCycle = std::chrono::seconds(20);
constexpr kube::Duration kWatchLag = std::chrono::seconds(1);  // The scheduler's watch may be this far behind ours.
constexpr kube::Duration kSweepEvery = std::chrono::minutes(1);

// Device plugins name devices by the vendor's domain; of Kubernetes' own resources only device classes are devices.
bool IsDevice(std::string_view resource) {
  if (resource.starts_with(kDeviceClassPrefix)) return true;
  return resource.find('/') != std::string_view::npos && resource.find("kubernetes.io/") == std::string_view::npos;
}

// Whether `more` leaves too little of what is asked for. Of a device, anything more does.
bool IsShort(const LedgerNode& node, const Resources& asked, const Resources& more) {
  const auto lacks = [&](std::string_view name) {
    const std::int64_t extra = more.Amount(name);
    if (asked.Amount(name) <= 0 || extra <= 0) return false;
    return IsDevice(name) || node.state.allocatable.Amount(name) - node.used.Amount(name) < extra;
  };
  return lacks("cpu") || lacks("memory") || lacks("pods") ||
         std::ranges::any_of(asked.extended, [&](const auto& resource) { return lacks(resource.first); });
}

}  // namespace

void Competition::Sweep(kube::TimePoint now) {
  if (now - swept_at_ < kSweepEvery) return;
  swept_at_ = now;
  for (auto it = kinds_.begin(); it != kinds_.end();) {
    Kind& kind = it->second;
    while (!kind.recent.empty() && now - kind.recent.front() >= kCompetitionLasts) kind.recent.pop_front();
    it = kind.Counts(now) ? std::next(it) : kinds_.erase(it);
  }
}

bool Competition::Put(const std::string& uid, WaitingPod pod, kube::TimePoint now) {
  Sweep(now);
  const auto [it, is_new] = pods_.try_emplace(uid);
  WaitingPod& known = it->second;
  if (!is_new) StopCounting(known, now);
  Kind& kind = kinds_[{pod.owner, pod.need}];
  ++kind.waiting;
  const bool was_undecided = known.is_undecided;
  pod.undecided_since = was_undecided ? known.undecided_since : now;
  known = std::move(pod);
  const bool has_place = !known.owner.empty() && ExcessOf(known.owner) <= 0;
  // This pod may get a place later, but the next one may come without a place, too.
  if (is_new && !known.owner.empty() && !has_place) kind.recent.push_back(now);
  return !has_place && (is_new || (known.is_undecided && !was_undecided));
}

bool Competition::Remove(const std::string& uid, kube::TimePoint now) {
  Sweep(now);
  const auto it = pods_.find(uid);
  if (it == pods_.end()) return false;
  const WaitingPod& pod = it->second;
  if (pod.owner.empty() && !pod.is_one_off) kinds_[{pod.owner, pod.need}].recent.push_back(now);
  StopCounting(pod, now);
  pods_.erase(it);
  return true;
}

// Erase a kind at once: each question goes over all of them, and a burst of jobs leaves thousands.
void Competition::StopCounting(const WaitingPod& pod, kube::TimePoint now) {
  const auto kind = kinds_.find({pod.owner, pod.need});
  --kind->second.waiting;
  if (!kind->second.Counts(now)) kinds_.erase(kind);
}

ShapePtr Competition::NeedOf(const std::string& uid) const {
  const auto it = pods_.find(uid);
  return it == pods_.end() ? nullptr : it->second.need;
}

void Competition::AddBound(const std::string& owner, const ShapePtr& need, kube::TimePoint now) {
  // Its waiting pods need all its places: nobody planned this pod.
  if (ExcessOf(owner) >= 0) kinds_[{owner, need}].recent.push_back(now);
}

void Competition::RemovePresent(const ShapePtr& need, kube::TimePoint now) {
  Sweep(now);
  Kind& kind = kinds_[{"", need}];
  --kind.present;
  kind.about_until = now + kCompetitionLasts;
}

void Competition::ForgetOwners() {
  for (auto& [key, kind] : kinds_) {
    if (!key.first.empty()) kind.recent.clear();
  }
}

int Competition::ExcessOf(const std::string& owner) const {
  int waiting = 0;
  for (auto it = kinds_.lower_bound({owner, nullptr}); it != kinds_.end() && it->first.first == owner; ++it) {
    waiting += it->second.waiting;
  }
  return waiting - static_cast<int>(ledger_.PlacesOf(owner).size());
}

std::vector<Competition::Demand> Competition::DemandAgainst(const std::string& gang, kube::TimePoint now) const {
  std::vector<Demand> demands;
  for (const auto& [key, kind] : kinds_) {
    const auto& [owner, need] = key;
    if (!owner.empty() && owner == gang) continue;
    const bool may_have_places = !owner.empty() && kind.waiting > 0;
    const int waiting = may_have_places ? std::clamp(ExcessOf(owner), 0, kind.waiting) : kind.waiting;
    const auto is_over = [&](kube::TimePoint at) { return now - at >= kCompetitionLasts; };
    const int recent = static_cast<int>(kind.recent.end() - std::ranges::partition_point(kind.recent, is_over));
    const bool is_about = kind.IsAbout(now);
    if (waiting > 0 || recent > 0 || is_about) demands.push_back({need.get(), waiting, recent, is_about});
  }
  return demands;
}

bool Competition::IsTooMuch(const std::vector<Demand>& demands, const std::vector<Place>& places) const {
  std::set<std::pair<const LedgerNode*, const PodShape*>> seen;
  for (const Place& place : places) {
    const LedgerNode* node = ledger_.FindNode(place.node);
    if (node == nullptr || !seen.emplace(node, place.shape.get()).second) continue;
    Resources together, one_more;
    for (const Demand& demand : demands) {
      if (!Accepts(node->state, *demand.need)) continue;
      const Resources& request = demand.need->request;
      const int most = CopiesThatFit(node->state.allocatable, {}, request, std::max(1, demand.waiting + demand.recent));
      if (most == 0) continue;
      Resources all = request;
      all *= std::min(most, demand.waiting + demand.recent);
      all.pods = demand.waiting;  // Pods that came and went gave the node's pod slots back.
      together += all;
      if (demand.is_about) one_more.RaiseTo(request);
    }
    together += one_more;
    if (IsShort(*node, place.shape->request, together)) return true;
  }
  return false;
}

bool Competition::Suits(const ShapePtr& need, const std::string& gang) const {
  return std::ranges::any_of(ledger_.PlacesOf(gang), [&](const Place& place) {
    const LedgerNode* node = ledger_.FindNode(place.node);
    return node && Accepts(node->state, *need);
  });
}

bool Competition::Threatens(const std::string& gang, kube::TimePoint now) const {
  const std::vector<Place>& places = ledger_.PlacesOf(gang);
  return !places.empty() && IsTooMuch(DemandAgainst(gang, now), places);
}

bool Competition::MayTakeOneOf(const std::vector<Place>& places, const std::string& gang, int priority,
                               kube::TimePoint since, kube::TimePoint now) const {
  if (now - since >= kLongestCycle) return false;
  std::map<const PodShape*, int> undecided;
  for (const auto& [uid, pod] : pods_) {
    if (!pod.is_undecided || pod.priority < priority || pod.owner == gang) continue;
    if (now - pod.undecided_since >= kLongestDecision || pod.undecided_since > since + kWatchLag) continue;
    if (!pod.is_nominated || pod.owner.empty() || ExcessOf(pod.owner) > 0) ++undecided[pod.need.get()];
  }
  std::vector<Demand> demands;
  for (const auto& [need, count] : undecided) demands.push_back({need, count, 0});
  return IsTooMuch(demands, places);
}

bool Competition::DoesAnyoneWaitForDevice() const {
  return std::ranges::any_of(pods_, [](const auto& entry) {
    const WaitingPod& pod = entry.second;
    return !pod.is_undecided && pod.owner.empty() && !pod.need->request.Accelerator().empty();
  });
}

}  // namespace grus

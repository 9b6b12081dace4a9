// SPDX-License-Identifier: Apache-2.0
#include "bench/gang_observer.h"

#include "clientlib/model/core_v1.h"
#include "tests/kit/conditions.h"

namespace bench {

using kube::KindOf;

GangObserver::GangObserver(kube::Client& client, const kube::Clock& clock, const kube::Log& log)
    : clock_(clock),
      observer_(client, clock, log, {&KindOf<kube::Pod>(), &KindOf<api::PodGroup>(), &KindOf<kube::Namespace>()}) {}

kube::Status GangObserver::Start() {
  return observer_.Start([this](const kube::Kind& kind, const kube::Change& change) {
    std::lock_guard lock(mutex_);
    if (&kind == &KindOf<kube::Pod>()) OnPod(change);
    if (&kind == &KindOf<api::PodGroup>()) OnGroup(change);
  });
}

void GangObserver::Count(const kube::Pod& pod, int by) {
  PodCounts& counts = counts_[pod.metadata.ns];
  counts.all += by;
  if (IsGated(pod)) counts.gated += by;
  if (IsBound(pod)) counts.bound += by;
  if (pod.status.phase == "Running") counts.running += by;
  if (pod.status.phase == "Succeeded") counts.succeeded += by;
}

void GangObserver::OnPod(const kube::Change& change) {
  if (change.before) Count(static_cast<const kube::Pod&>(*change.before), -1);
  if (change.after) Count(static_cast<const kube::Pod&>(*change.after), 1);
  const kube::ConstObject& pod = change.after ? change.after : change.before;
  if (pod->metadata.ns != recorded_) return;
  events_.push_back({std::static_pointer_cast<const kube::Pod>(pod), !change.after, clock_.Now()});
}

void GangObserver::OnGroup(const kube::Change& change) {
  const auto& group = static_cast<const api::PodGroup&>(change.Any());
  const std::string& ns = group.metadata.ns;
  if (change.after) {
    by_group_[ns][group.metadata.name] = {group.status.phase, kit::ReasonIn(group.status.conditions),
                                          kit::MessageIn(group.status.conditions), group.status.attempts};
  } else {
    by_group_[ns].erase(group.metadata.name);
  }
  if (ns == recorded_) events_.push_back({nullptr, false, clock_.Now()});
}

bool GangObserver::Wait(const std::function<bool()>& reached, kube::TimePoint until) {
  return observer_.Await(
      [&] {
        std::lock_guard lock(mutex_);
        return reached();
      },
      until);
}

bool GangObserver::WaitForPods(const std::string& ns, const std::function<bool(const PodCounts&)>& reached,
                               kube::TimePoint until) {
  return Wait([&] { return reached(counts_[ns]); }, until);
}

bool GangObserver::WaitForGroups(const std::string& ns,
                                 const std::function<bool(const std::map<std::string, GroupState>&)>& reached,
                                 kube::TimePoint until) {
  return Wait([&] { return reached(by_group_[ns]); }, until);
}

bool GangObserver::WaitForNoNamespace(const std::string& ns, kube::TimePoint until) {
  return Wait(
      [&] {
        return counts_[ns].all == 0 && !observer_.Of(KindOf<kube::Namespace>()).store().Get({"", ns});
      },
      until);
}

PodCounts GangObserver::Pods(const std::string& ns) {
  std::lock_guard lock(mutex_);
  return counts_[ns];
}

GroupState GangObserver::Group(const std::string& ns, const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto& groups = by_group_[ns];
  const auto found = groups.find(name);
  return found == groups.end() ? GroupState() : found->second;
}

void GangObserver::Record(const std::string& ns) {
  std::lock_guard lock(mutex_);
  recorded_ = ns;
  events_.clear();
}

std::optional<GangObserver::Event> GangObserver::Next(kube::TimePoint until) {
  std::optional<Event> event;
  (void)Wait(
      [&] {
        if (events_.empty()) return false;
        event = std::move(events_.front());
        events_.pop_front();
        return true;
      },
      until);
  return event;
}

}  // namespace bench

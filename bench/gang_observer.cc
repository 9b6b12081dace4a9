// SPDX-License-Identifier: Apache-2.0
#include "bench/gang_observer.h"

#include "clientlib/model/core_v1.h"

namespace bench {

using kube::KindOf;

bool IsUnschedulable(const kube::Pod& pod) {
  const kube::CoreCondition* scheduled = kube::FindCondition(pod.status.conditions, "PodScheduled");
  return scheduled && !scheduled->is_true() && scheduled->reason == "Unschedulable";
}

GangObserver::GangObserver(kube::Client& client, const kube::Clock& clock, const kube::Log& log)
    : clock_(clock),
      pods_(client, KindOf<kube::Pod>(), {}, clock, log),
      groups_(client, KindOf<api::PodGroup>(), {}, clock, log),
      namespaces_(client, KindOf<kube::Namespace>(), {}, clock, log) {
  pods_.AddHandler([this](const kube::Change& change, bool) { OnPod(change); });
  groups_.AddHandler([this](const kube::Change& change, bool) { OnGroup(change); });
  namespaces_.AddHandler([this](const kube::Change& change, bool) { OnNamespace(change); });
}

bool GangObserver::Start() {
  const kube::TimePoint until = clock_.Now() + std::chrono::seconds(60);
  bool is_synced = true;
  for (kube::Informer* informer : {&pods_, &groups_, &namespaces_}) informer->Start();
  for (kube::Informer* informer : {&pods_, &groups_, &namespaces_})
    is_synced = informer->WaitForSync(until) && is_synced;
  return is_synced;
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
  {
    std::lock_guard lock(mutex_);
    if (change.before) Count(static_cast<const kube::Pod&>(*change.before), -1);
    if (change.after) Count(static_cast<const kube::Pod&>(*change.after), 1);
    const kube::ConstObject& pod = change.after ? change.after : change.before;
    if (pod->metadata.ns == recorded_) {
      events_.push_back({std::static_pointer_cast<const kube::Pod>(pod), !change.after, clock_.Now()});
    }
  }
  changed_.NotifyAll();
}

void GangObserver::OnGroup(const kube::Change& change) {
  const auto& group = static_cast<const api::PodGroup&>(change.Any());
  const std::string& ns = group.metadata.ns;
  {
    std::lock_guard lock(mutex_);
    if (change.after) {
      const kube::Condition* ready = kube::FindCondition(group.status.conditions, "Ready");
      by_group_[ns][group.metadata.name] = {group.status.phase, ready ? ready->reason : "", ready ? ready->message : "",
                                            group.status.attempts};
    } else {
      by_group_[ns].erase(group.metadata.name);
    }
    if (ns == recorded_) events_.push_back({nullptr, false, clock_.Now()});
  }
  changed_.NotifyAll();
}

void GangObserver::OnNamespace(const kube::Change& change) {
  {
    std::lock_guard lock(mutex_);
    if (change.after) existing_.insert(change.after->metadata.name);
    else existing_.erase(change.before->metadata.name);
  }
  changed_.NotifyAll();
}

bool GangObserver::Wait(const std::function<bool()>& reached, kube::TimePoint until) {
  std::unique_lock lock(mutex_);
  while (!reached() && clock_.Now() < until) clock_.WaitUntil(lock, changed_, until);
  return reached();
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
  return Wait([&] { return counts_[ns].all == 0 && !existing_.contains(ns); }, until);
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
  std::unique_lock lock(mutex_);
  while (events_.empty() && clock_.Now() < until) clock_.WaitUntil(lock, changed_, until);
  if (events_.empty()) return std::nullopt;
  Event event = std::move(events_.front());
  events_.pop_front();
  return event;
}

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/lease_watch.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "clientlib/base/wait.h"

namespace grus {
namespace {

constexpr std::chrono::seconds kUsualDuration{15};
// A holder that is alive renews several times a minute (kube-scheduler: every 2 s). A longer duration would let one
// write of a lease silence us for as long as it says.
constexpr std::chrono::seconds kLongestDuration{60};
constexpr kube::Duration kSyncWait = std::chrono::seconds(5);

kube::InformerOptions Only(const std::vector<std::string>& namespaces, const std::string& selector) {
  kube::InformerOptions options;
  options.namespaces = namespaces;
  options.field_selector = selector;
  return options;
}

std::chrono::seconds DurationOf(const kube::Lease& lease) {
  const auto seconds = lease.spec.lease_duration_seconds.value_or(0);
  if (seconds <= 0) return kUsualDuration;
  return std::min(std::chrono::seconds(seconds), kLongestDuration);
}

}  // namespace

LeaseWatch::LeaseWatch(kube::Client& client, std::vector<std::string> namespaces, const std::string& name,
                       const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      namespaces_(std::move(namespaces)),
      selector_("metadata.name=" + name),
      clock_(clock),
      informer_(client, kube::KindOf<kube::Lease>(), Only(namespaces_, selector_), clock, log) {
  assert(!namespaces_.empty() && "no namespace would mean all of them");
  informer_.AddHandler([this](const kube::Change& change, bool) { OnLease(change); });
}

kube::Result<bool> LeaseWatch::Start(std::stop_token stop) {
  kube::ListOptions options;
  options.field_selector = selector_;
  bool is_there = false;
  for (const std::string& ns : namespaces_) {
    const kube::Result<kube::ObjectList> found = client_.List(kube::KindOf<kube::Lease>(), ns, options, stop);
    if (!found && found.error().code() == kube::ErrorCode::kForbidden) return found.error();
    // If the server does not answer now, the informer asks again, after Retry-After.
    if (!found) kube::WaitFor(clock_, found.error().retry_after().value_or(kube::Duration()), stop);
    is_there = is_there || (found && !found->items.empty());
  }
  informer_.Start();
  informer_.WaitForSync(clock_.Now() + kSyncWait, stop);
  return is_there;
}

void LeaseWatch::Stop() {
  informer_.Stop();
  informer_.Join();
}

void LeaseWatch::OnLease(const kube::Change& change) {
  const auto* before = static_cast<const kube::Lease*>(change.before.get());
  const auto* after = static_cast<const kube::Lease*>(change.after.get());
  // A list also tells of objects that did not change.
  if (before && after && before->metadata.resource_version == after->metadata.resource_version) return;
  const kube::ObjectKey key = change.Any().metadata.Key();
  const std::string now = after ? after->spec.holder_identity.value_or("") : "";
  bool is_news = false;
  {
    std::lock_guard lock(mutex_);
    Holder& holder = holders_[key];
    is_news = holder.identity != now;
    holder.identity = now;
    holder.ends_at = clock_.Now() + (after ? DurationOf(*after) : kUsualDuration);
    if (now.empty()) holders_.erase(key);
  }
  if (!is_news) return;
  for (const auto& tell : on_change_) tell();
}

std::string LeaseWatch::holder() const {
  std::lock_guard lock(mutex_);
  const auto latest = std::ranges::max_element(holders_, {}, [](const auto& entry) { return entry.second.ends_at; });
  return latest == holders_.end() ? std::string() : latest->second.identity;
}

std::optional<kube::TimePoint> LeaseWatch::held_until() const {
  std::lock_guard lock(mutex_);
  std::optional<kube::TimePoint> latest;
  for (const auto& [key, holder] : holders_) {
    if (holder.ends_at > clock_.Now()) latest = std::max(latest.value_or(holder.ends_at), holder.ends_at);
  }
  return latest;
}

}  // namespace grus

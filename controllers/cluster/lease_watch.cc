// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/lease_watch.h"

#include <algorithm>

#include "clientlib/base/wait.h"

namespace grus {
namespace {

constexpr std::chrono::seconds kUsualDuration{15};
constexpr kube::Duration kSyncWait = std::chrono::seconds(5);

kube::InformerOptions Only(const std::string& ns, const std::string& selector) {
  kube::InformerOptions options;
  if (!ns.empty()) options.namespaces = {ns};
  options.field_selector = selector;
  return options;
}

}  // namespace

LeaseWatch::LeaseWatch(kube::Client& client, const std::string& ns, const std::string& name, const kube::Clock& clock,
                       const kube::Log& log)
    : client_(client),
      ns_(ns),
      selector_("metadata.name=" + name),
      clock_(clock),
      informer_(client, kube::KindOf<kube::Lease>(), Only(ns, selector_), clock, log) {
  informer_.AddHandler([this](const kube::Change& change, bool) { OnLease(change); });
}

kube::Result<bool> LeaseWatch::Start(std::stop_token stop) {
  kube::ListOptions options;
  options.field_selector = selector_;
  const kube::Result<kube::ObjectList> found = client_.List(kube::KindOf<kube::Lease>(), ns_, options, stop);
  if (!found && found.error().code() == kube::ErrorCode::kForbidden) return found.error();
  // If the server does not answer now, the informer asks again, after Retry-After.
  if (!found) kube::WaitFor(clock_, found.error().retry_after().value_or(kube::Duration()), stop);
  informer_.Start();
  informer_.WaitForSync(clock_.Now() + kSyncWait, stop);
  return found && !found->items.empty();
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
    const auto seconds = after ? after->spec.lease_duration_seconds : std::nullopt;
    holder.ends_at = clock_.Now() + (seconds ? std::chrono::seconds(*seconds) : kUsualDuration);
    if (now.empty()) holders_.erase(key);
  }
  if (!is_news) return;
  for (const auto& tell : on_change_) tell();
}

std::string LeaseWatch::holder() const {
  std::lock_guard lock(mutex_);
  return holders_.empty() ? std::string() : holders_.begin()->second.identity;
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

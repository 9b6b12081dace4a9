// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/cluster_context.h"

#include <algorithm>
#include <utility>

#include "clientlib/model/time.h"
#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

constexpr int kMostConflicts = 5;  // Nothing runs between a read and its write, so even one conflict is rare.

}  // namespace

std::string ClusterContext::Now() const { return ToText(Time{simulation.WallNow()}); }

bool ClusterContext::Modify(std::string_view resource, const ObjectKey& key, std::string_view uid,
                            std::string_view subresource, const std::function<bool(Json&)>& change) const {
  for (int tries = 0; tries < kMostConflicts; ++tries) {
    const FakeApiServer::ObjectPtr found = server.Get(resource, key);
    if (!found || UidOf(*found) != uid) return true;
    Json object = *found;
    if (!change(object)) return true;
    const auto written = server.Update(resource, std::move(object), subresource);
    if (written || written.error().code() == ErrorCode::kNotFound) return true;
    if (written.error().code() != ErrorCode::kConflict) return false;
  }
  return false;
}

bool ClusterContext::DeleteObject(std::string_view resource, const Json& object, int grace,
                                  std::string_view propagation) const {
  Json how = Json::MakeObject({{"preconditions", Json::MakeObject({{"uid", UidOf(object)}})}});
  if (grace >= 0) how["gracePeriodSeconds"] = grace;
  if (!propagation.empty()) how["propagationPolicy"] = propagation;
  const Status deleted = server.Delete(resource, KeyOf(object), how);
  return deleted || deleted.error().code() == ErrorCode::kNotFound ||
         deleted.error().code() == ErrorCode::kConflict;  // Another object now has the name.
}

WorkLoop::WorkLoop(const ClusterContext& context, const Lag& lag, std::function<bool(const ObjectKey&)> reconcile,
                   Lag retries)
    : context_(context), lag_(lag), reconcile_(std::move(reconcile)), retries_(retries) {}

void WorkLoop::AddAfter(const ObjectKey& key, Duration delay) {
  const TimePoint at = context_.simulation.Now() + std::max(delay, Duration::zero());
  const auto [due, is_new] = due_.emplace(key, at);
  if (!is_new && due->second <= at) return;
  due->second = at;
  context_.simulation.After(delay, [this, key, at] {
    const auto found = due_.find(key);
    if (found == due_.end() || found->second != at) return;  // An earlier pass replaced this one.
    due_.erase(found);
    Run(key);
  });
}

void WorkLoop::Run(const ObjectKey& key) {
  if (reconcile_(key)) {
    failures_.erase(key);
    return;
  }
  const int failures = std::min(failures_[key]++, 18);
  AddAfter(key, std::min<Duration>(retries_.least * (1 << failures), retries_.most));
}

}  // namespace kube::testing

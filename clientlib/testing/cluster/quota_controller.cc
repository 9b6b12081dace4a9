// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/quota_controller.h"

#include "clientlib/testing/api_server/quota.h"
#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {}  // namespace

QuotaController::QuotaController(const ClusterContext& context)
    : context_(context),
      loop_(context, context.options.quotas, [this](const ObjectKey& key) { return Reconcile(key); }) {}

void QuotaController::Observe(const ServerChange& change) {
  const Json& object = change.after ? *change.after : *change.before;
  const ObjectKey key = KeyOf(object);
  if (change.resource == "resourcequotas") {
    if (!change.after) {
      quotas_[key.ns].erase(key);
      return;
    }
    quotas_[key.ns].insert(key);
    if (!change.before || !Same(change.before->At({"spec", "hard"}), object.At({"spec", "hard"}))) loop_.Add(key);
    return;
  }
  if (change.resource != "pods" || !change.before) return;
  const bool is_over = !change.after || (HasEnded(*change.after) && !HasEnded(*change.before));
  const auto found = quotas_.find(key.ns);
  if (!is_over || found == quotas_.end()) return;
  for (const ObjectKey& quota : found->second) loop_.Add(quota);
}

bool QuotaController::Reconcile(const ObjectKey& key) {
  const FakeApiServer::ObjectPtr quota = context_.server.Get("resourcequotas", key);
  if (!quota) return true;
  return context_.Modify("resourcequotas", key, UidOf(*quota), "status", [&](Json& object) {
    const Json* const hard = object.At({"spec", "hard"});
    ResourceList used;
    for (const auto& [name, amount] : ReadAmounts(hard)) used.emplace_back(name, 0);
    for (const FakeApiServer::ObjectPtr& pod : context_.server.List("pods", key.ns)) {
      if (!IsCoveredBy(object, *pod)) continue;
      const ResourceList usage = QuotaUsageOf(*pod);
      for (auto& [name, amount] : used) {
        if (const Quantity* const more = FindResource(usage, name)) amount = SumOf(amount, *more);
      }
    }
    Json status = Json::MakeObject({{"hard", hard ? *hard : Json::MakeObject()}, {"used", WriteAmounts(used)}});
    if (object.Find("status") && *object.Find("status") == status) return false;
    object["status"] = std::move(status);
    return true;
  });
}

}  // namespace kube::testing

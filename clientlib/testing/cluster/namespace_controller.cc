// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/namespace_controller.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {}  // namespace

NamespaceController::NamespaceController(const ClusterContext& context)
    : context_(context),
      loop_(context, context.options.namespaces, [this](const ObjectKey& key) { return Reconcile(key.name); }) {}

void NamespaceController::Observe(const ServerChange& change) {
  const Json& object = change.after ? *change.after : *change.before;
  const ObjectKey key = KeyOf(object);
  if (change.resource == "namespaces") {
    if (change.after && IsBeingDeleted(object)) loop_.Add(key);
    return;
  }
  if (key.ns.empty() || (change.before && change.after)) return;
  const std::string resource(change.resource);
  if (change.after) {
    contents_[key.ns][resource].insert(key.name);
    return;
  }
  auto& resources = contents_[key.ns];
  resources[resource].erase(key.name);
  if (resources[resource].empty()) resources.erase(resource);
  if (resources.empty()) contents_.erase(key.ns);
}

bool NamespaceController::Reconcile(const std::string& name) {
  const FakeApiServer::ObjectPtr ns = context_.server.Get("namespaces", {"", name});
  if (!ns || !IsBeingDeleted(*ns)) return true;
  std::vector<std::string> resources;
  if (const auto found = contents_.find(name); found != contents_.end()) {
    for (const auto& [resource, names] : found->second) resources.push_back(resource);
  }
  if (std::find(resources.begin(), resources.end(), "pods") != resources.end()) {
    Duration grace{};
    if (!Empty("pods", name, grace)) return false;
    if (contents_.contains(name) && contents_[name].contains("pods")) {
      // As the real controller: half of the longest grace of the pods, and a second.
      loop_.AddAfter({"", name}, grace / 2 + std::chrono::seconds(1));
      return true;
    }
  }
  for (const std::string& resource : resources) {
    Duration grace{};
    if (resource != "pods" && !Empty(resource, name, grace)) return false;
  }
  if (contents_.contains(name)) return false;  // Finalizers hold something; look again.
  return context_.Modify("namespaces", {"", name}, UidOf(*ns), "finalize", [](Json& object) {
    object["spec"]["finalizers"] = Json::MakeArray();
    return true;
  });
}

bool NamespaceController::Empty(const std::string& resource, const std::string& ns, Duration& grace) {
  for (const FakeApiServer::ObjectPtr& object : context_.server.List(resource, ns)) {
    if (!IsBeingDeleted(*object) && !context_.DeleteObject(resource, *object, -1, "Background")) return false;
    const FakeApiServer::ObjectPtr left = context_.server.Get(resource, KeyOf(*object));
    if (!left) continue;
    grace = std::max<Duration>(grace, std::chrono::seconds(IntAt(*left, {"metadata", "deletionGracePeriodSeconds"})));
  }
  return true;
}

}  // namespace kube::testing

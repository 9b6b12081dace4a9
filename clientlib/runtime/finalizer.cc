// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/finalizer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "clientlib/client/patch.h"

namespace kube {
namespace {

Json ListOf(const std::vector<std::string>& finalizers) {
  Json list = Json::MakeArray();
  for (const std::string& finalizer : finalizers) list.Append(finalizer);
  return list;
}

// The server does not look for duplicates itself, so the whole list is tested.
JsonPatch PatchToAdd(const ObjectMeta& object, const std::string& finalizer) {
  JsonPatch patch;
  patch.Test({"metadata", "uid"}, object.uid);
  if (object.finalizers.empty()) {
    patch.Test({"metadata", "finalizers"}, Json())
        .Add({"metadata", "finalizers"}, Json::MakeArray({finalizer}));
  } else {
    patch.Test({"metadata", "finalizers"}, ListOf(object.finalizers))
        .Add({"metadata", "finalizers", "-"}, finalizer);
  }
  return patch;
}

JsonPatch PatchToRemove(const ObjectMeta& object, const std::string& finalizer, std::size_t index) {
  const std::string position = std::to_string(index);
  JsonPatch patch;
  patch.Test({"metadata", "uid"}, object.uid);
  patch.Test({"metadata", "finalizers", position}, finalizer).Remove({"metadata", "finalizers", position});
  return patch;
}

Status Write(Client& client, const Kind& kind, const ObjectMeta& object, const JsonPatch& patch,
             std::stop_token stop) {
  Result<Client::ObjectPtr> written =
      client.Patch(kind, object.Key(), PatchType::kJson, patch.operations(), {}, std::move(stop));
  if (written || written.error().code() == ErrorCode::kNotFound) return {};
  // The server's answer to a test that does not hold, or to a position that is no longer there.
  if (written.error().code() == ErrorCode::kInvalid) {
    return Error(ErrorCode::kConflict, "its finalizers have changed meanwhile: " + written.error().message());
  }
  return std::move(written).error();
}

}  // namespace

Result<Action> ReconcileWithFinalizer(Client& client, const Kind& kind, const ObjectMeta& object,
                                      const std::string& finalizer, const FinalizerSteps& steps,
                                      std::stop_token stop) {
  assert(finalizer.find('/') != std::string::npos && "the API server wants a domain");
  const auto found = std::find(object.finalizers.begin(), object.finalizers.end(), finalizer);
  const bool has_it = found != object.finalizers.end();
  const auto context = [&](const char* what) {
    return std::string(what) + " finalizer " + finalizer + " " + std::string(kind.kind) + " " +
           object.Key().ToString();
  };

  if (!object.is_being_deleted()) {
    if (has_it) return steps.apply();
    Status added = Write(client, kind, object, PatchToAdd(object, finalizer), std::move(stop));
    if (!added) return std::move(added).error().with(context("add"));
    return Action::AwaitChange();
  }
  // Without ours there is nothing to clean up, or it was done: others still keep the object.
  if (!has_it) return Action::AwaitChange();
  if (Status cleaned = steps.cleanup(); !cleaned)
    return std::move(cleaned).error().with(context("clean up for"));
  const auto index = static_cast<std::size_t>(found - object.finalizers.begin());
  Status removed = Write(client, kind, object, PatchToRemove(object, finalizer, index), std::move(stop));
  if (!removed) return std::move(removed).error().with(context("remove"));
  return Action::AwaitChange();
}

}  // namespace kube

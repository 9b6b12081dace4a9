// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/ownership.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace kube {
namespace {

// "apps/v1": "apps"; "v1": "".
std::string_view GroupOf(std::string_view api_version) {
  const std::size_t slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

std::string_view TextAt(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* value = object.At(path);
  const std::string* text = value ? value->AsString() : nullptr;
  return text ? std::string_view(*text) : std::string_view();
}

// Ignores the UID: the same name with another UID is an owner that was deleted and created again.
bool IsReferenceTo(const Json& reference, const Kind& kind, const ObjectMeta& owner) {
  return GroupOf(TextAt(reference, {"apiVersion"})) == kind.group && TextAt(reference, {"kind"}) == kind.kind &&
         TextAt(reference, {"name"}) == owner.name;
}

bool IsController(const Json& reference) {
  const Json* flag = reference.Find("controller");
  return flag && flag->AsBool() && *flag->AsBool();
}

}  // namespace

std::optional<ObjectKey> ControllerKey(const Kind& owner, const ObjectMeta& child) {
  const OwnerReference* reference = child.Controller();
  if (reference == nullptr || reference->kind != owner.kind || GroupOf(reference->api_version.view()) != owner.group) {
    return std::nullopt;
  }
  return ObjectKey{owner.is_namespaced ? child.ns : std::string(), std::string(reference->name)};
}

std::vector<ObjectKey> ControllerKeys(const Kind& owner, const Change& change) {
  std::vector<ObjectKey> keys;
  for (const ConstObject& object : {change.before, change.after}) {
    if (!object) continue;
    const std::optional<ObjectKey> key = ControllerKey(owner, object->metadata);
    if (key && std::find(keys.begin(), keys.end(), *key) == keys.end()) keys.push_back(*key);
  }
  return keys;
}

Status SetControllerReference(const Kind& kind, const ObjectMeta& owner, Json& child) {
  const auto refuse = [&](ErrorCode code, std::string why) {
    return Error(code, std::move(why))
        .with("make " + std::string(kind.kind) + " " + owner.Key().ToString() + " the controller of " +
              std::string(TextAt(child, {"kind"})) + " " + std::string(TextAt(child, {"metadata", "name"})));
  };
  if (owner.uid.empty()) return refuse(ErrorCode::kInvalidArgument, "the owner has no UID");
  const std::string_view ns = TextAt(child, {"metadata", "namespace"});
  if (!owner.ns.empty() && ns.empty()) {
    return refuse(ErrorCode::kInvalidArgument, "a cluster-scoped object cannot have an owner in a namespace");
  }
  if (!owner.ns.empty() && ns != owner.ns) {
    return refuse(ErrorCode::kInvalidArgument, "the child is in namespace " + std::string(ns));
  }

  const Json* const found = child.At({"metadata", "ownerReferences"});
  Json::Array references;
  if (found && found->AsArray()) references = *found->AsArray();
  const auto same = [&](const Json& reference) { return IsReferenceTo(reference, kind, owner); };
  for (const Json& reference : references) {
    if (!IsController(reference) || same(reference)) continue;
    return refuse(ErrorCode::kAlreadyExists, "it is controlled by " + std::string(TextAt(reference, {"kind"})) + " " +
                                                 std::string(TextAt(reference, {"name"})));
  }
  Json reference = Json::MakeObject({{"apiVersion", kind.ApiVersion()},
                                     {"kind", kind.kind},
                                     {"name", owner.name},
                                     {"uid", owner.uid},
                                     {"controller", true},
                                     {"blockOwnerDeletion", true}});
  const auto old = std::find_if(references.begin(), references.end(), same);
  if (old != references.end()) *old = std::move(reference);
  else references.push_back(std::move(reference));
  child["metadata"]["ownerReferences"] = std::move(references);
  return {};
}

}  // namespace kube

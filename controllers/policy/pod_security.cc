// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_security.h"

namespace grus {
namespace {

using kube::Json;

// The member, an empty object if it is not there; null if it is something else.
Json* ObjectIn(Json& parent, const char* name) {
  Json& member = parent[name];
  if (member.is_null()) member = Json::MakeObject();
  return member.is_object() ? &member : nullptr;
}

void SetIfOpen(Json& parent, const char* name, Json value) {
  Json& member = parent[name];
  if (member.is_null()) member = std::move(value);
}

void FillContainer(Json& container) {
  if (!container.is_object()) return;
  Json* context = ObjectIn(container, "securityContext");
  if (context == nullptr) return;
  SetIfOpen(*context, "allowPrivilegeEscalation", false);
  if (Json* capabilities = ObjectIn(*context, "capabilities")) {
    SetIfOpen(*capabilities, "drop", Json::MakeArray({"ALL"}));
  }
}

}  // namespace

bool IsRefusedAsUnrestricted(const kube::Error& refusal) {
  return refusal.code() == kube::ErrorCode::kForbidden &&
         refusal.message().find("violates PodSecurity \"restricted:") != std::string::npos;
}

void FillPodSecurity(Json& pod) {
  if (!pod.is_object()) return;
  Json* spec = ObjectIn(pod, "spec");
  if (spec == nullptr) return;
  if (Json* context = ObjectIn(*spec, "securityContext")) {
    SetIfOpen(*context, "runAsNonRoot", true);
    SetIfOpen(*context, "seccompProfile", Json::MakeObject({{"type", "RuntimeDefault"}}));
  }
  for (const char* list : {"containers", "initContainers"}) {
    Json* containers = spec->Find(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : *containers->AsArray()) FillContainer(container);
  }
  Json* metadata = ObjectIn(pod, "metadata");
  Json* annotations = metadata == nullptr ? nullptr : ObjectIn(*metadata, "annotations");
  if (annotations != nullptr) (*annotations)[kPodSecurityAnnotation] = "restricted";
}

}  // namespace grus

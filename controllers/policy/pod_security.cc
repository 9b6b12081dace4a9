// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pod_security.h"

#include <string>
#include <vector>

#include "controllers/policy/json_default.h"

namespace grus {
namespace {

using kube::Json;

struct Default {
  std::vector<std::string> path;
  Json value;
};

const std::vector<Default>& DefaultsOfPod() {
  static const std::vector<Default> kDefaults = {
      {{"spec", "securityContext", "runAsNonRoot"}, true},
      {{"spec", "securityContext", "seccompProfile"}, Json::MakeObject({{"type", "RuntimeDefault"}})},
      {{"metadata", "annotations", kPodSecurityAnnotation}, "restricted"}};
  return kDefaults;
}

const std::vector<Default>& DefaultsOfContainer() {
  static const std::vector<Default> kDefaults = {
      {{"securityContext", "allowPrivilegeEscalation"}, false},
      {{"securityContext", "capabilities", "drop"}, Json::MakeArray({"ALL"})}};
  return kDefaults;
}

}  // namespace

bool IsRefusedAsUnrestricted(const kube::Error& refusal) {
  return refusal.code() == kube::ErrorCode::kForbidden &&
         refusal.message().find("violates PodSecurity \"restricted:") != std::string::npos;
}

void FillPodSecurity(Json& pod) {
  if (!pod.is_object()) return;
  for (const auto& [path, value] : DefaultsOfPod()) SetDefault(pod, path, value);
  // Whatever the template says there.
  Json* metadata = pod.Find("metadata");
  Json* annotations = metadata != nullptr ? metadata->Find("annotations") : nullptr;
  if (annotations != nullptr && annotations->is_object()) (*annotations)[kPodSecurityAnnotation] = "restricted";
  for (const char* list : {"containers", "initContainers"}) {
    Json* spec = pod.Find("spec");
    Json* containers = spec != nullptr ? spec->Find(list) : nullptr;
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : *containers->AsArray()) {
      if (!container.is_object()) continue;
      for (const auto& [path, value] : DefaultsOfContainer()) SetDefault(container, path, value);
    }
  }
}

bool FillIfRefused(const kube::Error& refusal, Json& pod) {
  const bool is_refused = IsRefusedAsUnrestricted(refusal);
  if (is_refused) FillPodSecurity(pod);
  return is_refused;
}

}  // namespace grus

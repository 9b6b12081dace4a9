// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/live_objects.h"

#include <utility>

namespace grus {

kube::Error Explained(const kube::Error& error, const kube::Kind& kind, const kube::ObjectKey& key) {
  const std::string kind_name(kind.kind);
  if (error.code() != kube::ErrorCode::kNotFound) {
    kube::Error said = error;
    return std::move(said).with(key.name.empty() ? "list " + kind_name + "s"
                                                 : "get " + kind_name + " " + key.ToString());
  }
  // An API server that knows the kind answers with a Status that has a reason.
  if (error.reason().empty() || key.name.empty()) {
    return {kube::ErrorCode::kNotFound, "the cluster has no " + kind_name + "s: the CRDs of grus are not installed"};
  }
  return {kube::ErrorCode::kNotFound, kind_name + " " + key.ToString() + " does not exist; kubectl get " +
                                          std::string(kind.plural) + (kind.is_namespaced ? " -A" : "") + " lists all"};
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/enforcement.h"

#include <string>

#include "crds/types/sharing_names.h"

namespace grus {

using kube::Error;
using kube::ErrorCode;

std::string_view NameOf(Enforcement way) {
  switch (way) {
    case Enforcement::kMps: return api::kEnforcedByMps;
    case Enforcement::kCooperative: return api::kEnforcedCooperatively;
    case Enforcement::kNone: break;
  }
  return api::kNotEnforced;
}

kube::Result<Enforcement> AskedEnforcement(const kube::ObjectMeta& node) {
  if (!node.labels.contains(api::kEnforcementLabel)) return Enforcement::kNone;
  const std::string_view word = node.Label(api::kEnforcementLabel);
  if (word == "none") return Enforcement::kNone;
  if (word == "mps") return Enforcement::kMps;
  if (word == "cooperative") return Enforcement::kCooperative;
  return Error(ErrorCode::kInvalidArgument, "node " + node.name + ": label " + api::kEnforcementLabel + " is \"" +
                                                std::string(word) +
                                                "\": expected cooperative, mps or none, or no such label");
}

kube::Status CheckEnforcement(Enforcement way, SharingMode mode) {
  const bool counts_compute = mode == SharingMode::kMilli || mode == SharingMode::kAlnair;
  if (way == Enforcement::kNone || mode == SharingMode::kNone || counts_compute) return {};
  const bool is_mps = way == Enforcement::kMps;
  if (!is_mps && mode == SharingMode::kGpushare) return {};
  return Error(ErrorCode::kInvalidArgument,
               std::string(is_mps ? "MPS is not available in the mode "
                                  : "cooperative limits are not available yet in the mode ") +
                   std::string(NameOf(mode)) + ": set the node's label " + api::kSharingModeLabel + " to " +
                   (is_mps ? "milli or alnair" : "milli, alnair or gpushare"));
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// What can hold containers to their parts of GPUs. Pure.
#pragma once

#include <string_view>

#include "clientlib/base/result.h"
#include "clientlib/model/meta.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus {

// Nothing; CUDA's MPS (nodeagent/mps); a library in the container (nodeagent/limits).
enum class Enforcement { kNone, kMps, kCooperative };

std::string_view NameOf(Enforcement way);  // As pods say it: "MPS".

// By the label of the node; without it: kNone. Error (kInvalidArgument): a value that is not known.
kube::Result<Enforcement> AskedEnforcement(const kube::ObjectMeta& node);
// Each way needs the kubelet's answer to the agent, so none goes with claims; MPS not with gpushare's pods either,
// whose compute is not counted. Error (kInvalidArgument): this one does not go with this mode, and what does.
kube::Status CheckEnforcement(Enforcement way, SharingMode mode);

}  // namespace grus

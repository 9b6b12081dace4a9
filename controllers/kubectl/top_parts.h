// SPDX-License-Identifier: Apache-2.0
// kubectl grus top --parts: which container has which part of which GPU, what it uses of it, and what is free.
//
// Pure: objects in, text out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "clientlib/model/core_v1.h"
#include "controllers/kubectl/part_objects.h"
#include "controllers/kubectl/part_uses.h"

namespace grus {

struct PartsView {
  std::vector<std::shared_ptr<const kube::Node>> nodes = {};
  std::vector<std::shared_ptr<const PartPod>> pods = {};
  PartUses uses = {};
  std::string ns = {};       // Whose pods are shown; empty: all.
  bool has_all_pods = true;  // Else it is not known what is free.
};

// A table by node and GPU: the parts of a GPU, those who use it without one, and a line of what is free. What is not
// known is "-", and annotations that make no sense are "unknown".
std::string TopPartsText(const PartsView& view);

// Nodes whose GPUs are shared, or of which a pod says that it has a part.
std::vector<std::string> NodesWithParts(const PartsView& view);

}  // namespace grus

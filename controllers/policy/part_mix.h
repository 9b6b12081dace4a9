// SPDX-License-Identifier: Apache-2.0
// Which requests for thousandths of GPUs a cluster typically sees: those of the pods that hold any now.
//
// It says which free thousandths are of use (see fragmentation.h). Pods that ask for none cost nothing here. Pure; the
// owner serialises access.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "controllers/policy/fit_index.h"
#include "controllers/policy/fragmentation.h"
#include "controllers/policy/node_match.h"
#include "controllers/policy/pod_shape.h"

namespace grus {

// Without models: those of a node are by whether it accepts the pod.
GpuRequest GpuRequestOf(const Resources& request);

class PartMix {
 public:
  // A pod or place that holds this now (`sign` 1), or no longer does (-1). `shape` null: any node would do.
  void Count(const Resources& request, const PodShape* shape, int sign);
  bool is_empty() const { return held_ == 0; }

  // Changes when typical pods may be others: not with each pod, but with one for each 64 that are held.
  std::uint64_t version() const;
  // As one node would have them: those that it does not accept fit nowhere on it. `nodes_version` changes whenever a
  // node does. Valid until this, version() or the mix changes; the same list for nodes that accept the same.
  const std::vector<TypicalPod>& TypicalOn(NodeId id, const NodeState& node, std::uint64_t nodes_version) const;

 private:
  struct Kind {
    ShapePtr shape;
    std::int64_t held = 0;
  };
  struct TypicalShape {
    ShapePtr shape;
    TypicalPod pod;
  };
  void Refresh() const;
  std::uint64_t AcceptedBy(const NodeState& node) const;

  ShapePool pool_;
  std::unordered_map<const PodShape*, Kind> kinds_;
  std::int64_t held_ = 0;
  // By the pods that were held when they were last looked at.
  mutable std::vector<TypicalShape> typical_;
  mutable std::int64_t changes_left_ = 0;
  mutable std::uint64_t version_ = 0;
  // Of typical_, which a node accepts, as bits: by node; and the list by the bits.
  mutable std::uint64_t nodes_version_ = 0;
  mutable std::vector<std::optional<std::uint64_t>> accepted_;
  mutable std::map<std::uint64_t, std::vector<TypicalPod>> lists_;
};

}  // namespace grus

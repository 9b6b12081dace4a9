// SPDX-License-Identifier: Apache-2.0
// Where a pod goes that is alone of its kind in its gang, among nodes whose GPUs are shared by thousandths: where least
// becomes of no use to the pods that the cluster typically sees (fragmentation.h, part_mix.h). Several of a kind rather
// keep together (fill.h).
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "controllers/policy/cluster_ledger.h"
#include "controllers/policy/fill.h"

namespace grus {

struct LonePlace {
  NodeId node = 0;
  std::string gpus = {};  // As for OnGpu(); empty: it asks for none.
};

// How much more of use the GPUs of each of these nodes are with such a pod than without: greater is better. Nullopt of
// a node: no room, or it shares no GPUs by thousandths; of all: no thousandths are held so far. Remembered where the
// ledger has an index of the shape.
std::vector<std::optional<double>> FragmentationScores(const ClusterLedger& ledger, const PodShape& shape,
                                                       std::span<const NodeId> nodes);

// On this node, beside what is taken there. Nullopt as above.
std::optional<LonePlace> LeastFragmentingOn(const ClusterLedger& ledger, const PodShape& shape, const LedgerNode& node,
                                            const Resources& taken);

// Of the nodes that have room, by the index and the overrides. `otherwise`: where it would go without this; the nodes
// are as welcome to it as this one (FitRank::tier). `taken`: of a node that is overridden. Nullopt: no thousandths are
// held so far, or that node has none.
std::optional<LonePlace> LeastFragmenting(const ClusterLedger& ledger, const FitIndex& index,
                                          const FitOverrides& overrides, NodeId otherwise,
                                          const std::function<Resources(const LedgerNode&)>& taken);

}  // namespace grus

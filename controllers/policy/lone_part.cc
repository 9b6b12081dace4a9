// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/lone_part.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

struct NodeGpus {
  FreeGpus free;
  std::vector<std::string_view> names;  // Likewise; of `allocatable`.
};

NodeGpus GpusOn(const NodeState& node, const Resources& taken) {
  NodeGpus gpus;
  gpus.free.milli_cpu = RestOf(node.allocatable.milli_cpu, taken.milli_cpu);
  ForEachFreeGpu(node.allocatable, taken, [&](std::string_view gpu, std::int64_t milli) {
    gpus.names.push_back(gpu);
    gpus.free.device_milli.push_back(static_cast<int>(std::min<std::int64_t>(milli, kWholeDevice)));
  });
  return gpus;
}

std::optional<GpuPlacement> PlaceOn(const PartMix& mix, const LedgerNode& node, const NodeGpus& gpus,
                                    const FitIndex& index) {
  if (gpus.names.empty()) return std::nullopt;
  return PlacePod(gpus.free, GpuRequestOf(index.shape().request), mix.TypicalOn(node.state));
}

}  // namespace

std::optional<LonePlace> LeastFragmenting(const ClusterLedger& ledger, const FitIndex& index,
                                          const FitOverrides& overrides, NodeId otherwise,
                                          const std::function<Resources(const LedgerNode&)>& taken) {
  const PartMix& mix = ledger.part_mix();
  if (mix.is_empty() || GpusOn(ledger.NodeAt(otherwise)->state, {}).names.empty()) return std::nullopt;
  const int tier = index.RankOf(otherwise).tier;
  const std::uint64_t version = mix.version();
  std::optional<NodeId> best;
  double best_score = 0;
  const auto compare = [&](NodeId id, std::optional<double> score) {
    if (!score || (best && (*score < best_score || (*score == best_score && id > *best)))) return;
    best = id;
    best_score = *score;
  };
  const auto score_of = [&](const LedgerNode& node, const Resources& used) -> std::optional<double> {
    const auto placement = PlaceOn(mix, node, GpusOn(node.state, used), index);
    return placement ? std::optional(placement->score) : std::nullopt;
  };
  for (const auto& [rank, nodes] : index.buckets()) {
    if (rank.tier != tier) continue;
    for (const NodeId id : nodes) {
      if (!overrides.empty() && overrides.contains(id)) continue;
      const LedgerNode& node = *ledger.NodeAt(id);
      compare(id, index.ScoreOf(id, version, [&] { return score_of(node, node.Taken()); }));
    }
  }
  for (const auto& [id, copies] : overrides) {
    if (copies <= 0 || !index.IsEligible(id) || index.RankOf(id).tier != tier) continue;
    const LedgerNode& node = *ledger.NodeAt(id);
    compare(id, score_of(node, taken(node)));
  }
  if (!best) return std::nullopt;
  const LedgerNode& node = *ledger.NodeAt(*best);
  const NodeGpus gpus = GpusOn(node.state, overrides.contains(*best) ? taken(node) : node.Taken());
  const std::optional<GpuPlacement> placement = PlaceOn(mix, node, gpus, index);
  std::vector<std::string_view> names;
  for (const int device : placement->devices) {
    names.push_back(gpus.names[static_cast<std::size_t>(device)]);
  }
  return LonePlace{*best, GpuListOf(names)};
}

}  // namespace grus

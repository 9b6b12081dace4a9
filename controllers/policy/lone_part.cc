// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/lone_part.h"

#include <algorithm>
#include <map>
#include <tuple>
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

class Scores {
 public:
  Scores(const ClusterLedger& ledger, const PodShape& shape)
      : mix_(ledger.part_mix()), nodes_version_(ledger.nodes_version()), request_(GpuRequestOf(shape.request)) {}

  // Nullopt: no room, as far as thousandths and CPUs say.
  std::optional<GpuPlacement> PlaceOn(const LedgerNode& node, const NodeGpus& gpus) const {
    if (gpus.names.empty()) return std::nullopt;
    return PlacePod(gpus.free, request_, mix_.TypicalOn(node.id, node.state, nodes_version_));
  }

  std::optional<double> Of(const LedgerNode& node) {
    Resources copy;
    return Of(node, node.TakenBy(copy));
  }
  std::optional<double> Of(const LedgerNode& node, const Resources& taken) {
    NodeGpus gpus = GpusOn(node.state, taken);
    if (gpus.names.empty()) return std::nullopt;
    std::ranges::sort(gpus.free.device_milli);
    const std::vector<TypicalPod>& typical = mix_.TypicalOn(node.id, node.state, nodes_version_);
    const auto [known, is_new] = known_.try_emplace({&typical, gpus.free.milli_cpu, gpus.free.device_milli});
    if (is_new) {
      if (const auto placement = PlacePod(gpus.free, request_, typical)) known->second = placement->score;
    }
    return known->second;
  }

 private:
  // What tells one node from another: of thousands, most are as free as another.
  using Likeness = std::tuple<const std::vector<TypicalPod>*, std::int64_t, std::vector<int>>;

  const PartMix& mix_;
  const std::uint64_t nodes_version_;
  const GpuRequest request_;
  std::map<Likeness, std::optional<double>> known_;
};

std::optional<LonePlace> PlaceBy(const Scores& scores, const LedgerNode& node, const Resources& taken) {
  const NodeGpus gpus = GpusOn(node.state, taken);
  const std::optional<GpuPlacement> placement = scores.PlaceOn(node, gpus);
  if (!placement) return std::nullopt;
  std::vector<std::string_view> names;
  for (const int device : placement->devices) {
    names.push_back(gpus.names[static_cast<std::size_t>(device)]);
  }
  return LonePlace{node.id, GpuListOf(names)};
}

}  // namespace

std::vector<std::optional<double>> FragmentationScores(const ClusterLedger& ledger, const PodShape& shape,
                                                       std::span<const NodeId> nodes) {
  std::vector<std::optional<double>> found(nodes.size());
  const PartMix& mix = ledger.part_mix();
  if (mix.is_empty()) return found;
  Scores scores(ledger, shape);
  const FitIndex* const index = ledger.FindIndex(shape);
  const std::uint64_t version = mix.version();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const LedgerNode* const node = ledger.NodeAt(nodes[i]);
    if (node == nullptr) continue;
    if (index == nullptr) {
      if (Accepts(node->state, shape)) found[i] = scores.Of(*node);
    } else if (index->IsEligible(nodes[i])) {
      found[i] = index->ScoreOf(nodes[i], version, [&] { return scores.Of(*node); });
    }
  }
  return found;
}

std::optional<LonePlace> LeastFragmentingOn(const ClusterLedger& ledger, const PodShape& shape, const LedgerNode& node,
                                            const Resources& taken) {
  if (ledger.part_mix().is_empty()) return std::nullopt;
  return PlaceBy(Scores(ledger, shape), node, taken);
}

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
  Scores scores(ledger, index.shape());
  for (const auto& [rank, nodes] : index.buckets()) {
    if (rank.tier != tier) continue;
    for (const NodeId id : nodes) {
      if (!overrides.empty() && overrides.contains(id)) continue;
      const LedgerNode& node = *ledger.NodeAt(id);
      compare(id, index.ScoreOf(id, version, [&] { return scores.Of(node); }));
    }
  }
  for (const auto& [id, copies] : overrides) {
    if (copies <= 0 || !index.IsEligible(id) || index.RankOf(id).tier != tier) continue;
    const LedgerNode& node = *ledger.NodeAt(id);
    compare(id, scores.Of(node, taken(node)));
  }
  if (!best) return std::nullopt;
  const LedgerNode& node = *ledger.NodeAt(*best);
  return PlaceBy(scores, node, overrides.contains(*best) ? taken(node) : node.Taken());
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/part_mix.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

constexpr double kCoverage = 0.95;  // Of the pods by the typical ones, as in the published runs of openb.
constexpr std::int64_t kHeldPerChange = 64;
constexpr std::size_t kMostKinds = 64;  // One bit each. Rare ones cost time and change little.

// All that tells one kind from another; memory is left out, as by fragmentation.h.
PodShape KindOf(const Resources& request, const PodShape* shape) {
  PodShape kind;
  if (shape != nullptr) kind = AloneOf(*shape);
  kind.placement.reset();
  kind.request = {};
  kind.request.milli_cpu = request.milli_cpu;
  kind.request.AddExtended(api::kGpuMilliResource, request.Extended(api::kGpuMilliResource));
  return kind;
}

}  // namespace

GpuRequest GpuRequestOf(const Resources& request) {
  GpuRequest asked{.milli_cpu = request.milli_cpu};
  const std::int64_t milli = request.Extended(api::kGpuMilliResource), whole = WholeGpusOf(request);
  if (milli <= 0) return asked;
  asked.devices = static_cast<int>(std::clamp<std::int64_t>(whole, 1, std::numeric_limits<int>::max()));
  // More than a GPU has fits nowhere.
  asked.device_milli = whole > 0 ? kWholeDevice : static_cast<int>(std::min<std::int64_t>(milli, kWholeDevice + 1));
  return asked;
}

void PartMix::Count(const Resources& request, const PodShape* shape, int sign) {
  if (request.Extended(api::kGpuMilliResource) <= 0) return;
  ShapePtr kind = pool_.Share(KindOf(request, shape));
  const auto [it, is_new] = kinds_.try_emplace(kind.get());
  if (is_new) it->second.shape = std::move(kind);
  it->second.held += sign;
  held_ += sign;
  --changes_left_;
  if (it->second.held <= 0) kinds_.erase(it);
}

std::uint64_t PartMix::version() const {
  Refresh();
  return version_;
}

void PartMix::Refresh() const {
  if (changes_left_ > 0) return;
  changes_left_ = held_ / kHeldPerChange + 1;
  ++version_;
  accepted_.clear();
  lists_.clear();
  std::vector<const Kind*> kinds;
  for (const auto& [shape, kind] : kinds_) kinds.push_back(&kind);
  const auto is_before = [](const Kind* a, const Kind* b) {
    if (a->held != b->held) return a->held > b->held;
    return GpuRequestOf(a->shape->request) < GpuRequestOf(b->shape->request);
  };
  std::ranges::sort(kinds, is_before);
  typical_.clear();
  std::int64_t covered = 0;
  for (const Kind* kind : kinds) {
    if (typical_.size() == kMostKinds || static_cast<double>(covered) >= kCoverage * static_cast<double>(held_)) break;
    covered += kind->held;
    typical_.push_back({kind->shape, {GpuRequestOf(kind->shape->request), static_cast<double>(kind->held)}});
  }
  for (TypicalShape& one : typical_) one.pod.share /= static_cast<double>(covered);
}

std::uint64_t PartMix::AcceptedBy(const NodeState& node) const {
  std::uint64_t accepted = 0;
  for (std::size_t i = 0; i < typical_.size(); ++i) {
    if (Accepts(node, *typical_[i].shape)) accepted |= std::uint64_t{1} << i;
  }
  return accepted;
}

const std::vector<TypicalPod>& PartMix::TypicalOn(NodeId id, const NodeState& node, std::uint64_t nodes_version) const {
  Refresh();
  if (std::exchange(nodes_version_, nodes_version) != nodes_version) accepted_.clear();
  if (id >= accepted_.size()) accepted_.resize(id + 1);
  if (!accepted_[id]) accepted_[id] = AcceptedBy(node);
  const auto [list, is_new] = lists_.try_emplace(*accepted_[id]);
  for (std::size_t i = 0; is_new && i < typical_.size(); ++i) {
    TypicalPod& pod = list->second.emplace_back(typical_[i].pod);
    if ((list->first >> i & 1) == 0) pod.request.models = 0;
  }
  return list->second;
}

}  // namespace grus

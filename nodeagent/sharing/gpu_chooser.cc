// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/gpu_chooser.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

bool IsOf(const PartAsk& ask, const HeldParts& held) { return ask.pod == held.pod && ask.container == held.container; }

bool HoldsLast(const HeldParts& held, const LastPart& last) {
  const auto found = held.ids.find(last.resource);
  return found != held.ids.end() && std::ranges::binary_search(found->second, last.ids.front());
}

const PartAsk* AskOf(const ChooserView& view, const HeldParts& held) {
  if (!view.asks) return nullptr;
  const auto found = std::ranges::find_if(*view.asks, [&](const PartAsk& ask) { return IsOf(ask, held); });
  return found == view.asks->end() ? nullptr : &*found;
}

// Containers that may be asking for the first time.
std::vector<const PartAsk*> Candidates(const ChooserView& view) {
  std::vector<const PartAsk*> candidates;
  if (!view.asks) return candidates;
  for (const PartAsk& ask : *view.asks) {
    if (ask.has_started || ask.amounts[view.resource] != view.amount) continue;
    const auto is_held = [&](const HeldParts& held) { return IsOf(ask, held); };
    if (view.held && std::ranges::any_of(*view.held, is_held)) continue;
    candidates.push_back(&ask);
  }
  return candidates;
}

// A container that nobody has seen with the last ids may be the one that asks now.
std::optional<Partner> UnseenPartner(const ChooserView& view, PartResource other) {
  if (!view.last || view.last->resource != other || !view.last->is_fresh) return std::nullopt;
  Partner partner{.gpu = view.last->gpu()};
  // Without a candidate, whoever asks is not known to the API server's watch yet.
  bool is_possible = !view.asks || Candidates(view).empty();
  // PodResources that answers does not show plain init containers, nor a pod that the kubelet has given up.
  partner.is_likely = is_possible || !view.held;
  for (const PartAsk& ask : view.asks ? *view.asks : std::vector<PartAsk>()) {
    const bool matches = ask.amounts[view.resource] == view.amount &&
                         ask.amounts[other] == static_cast<std::int64_t>(view.last->ids.size());
    is_possible |= matches;
    partner.is_likely |= matches && ask.is_init;
  }
  return is_possible ? std::optional(partner) : std::nullopt;
}

// The less is left, the fuller; of what a container can ask for.
std::int64_t Left(const GpuRoom& gpu) {
  std::int64_t left = 0;
  for (const PartResource resource : kPartResources) {
    if (gpu.total[resource] > 0) left += gpu.free[resource] * 1'000'000 / gpu.total[resource];
  }
  return left;
}

std::int64_t Most(const ChooserView& view) {
  std::int64_t most = 0;
  for (const GpuRoom& gpu : view.gpus) most = std::max(most, gpu.total[view.resource]);
  return most;
}

Error NoRoom(const ChooserView& view) {
  if (view.gpus.empty()) {
    return Error(
        ErrorCode::kInvalidArgument,
        AmountText(view.amount, view.resource) +
            ": every GPU that it could lie on is sick (the node's Events say how), or held otherwise; drain the node");
  }
  if (view.amount > Most(view)) return TooMuchFor(view.resource, view.amount, Most(view));
  std::string list;
  for (const GpuRoom& gpu : view.gpus) {
    list.append(list.empty() ? "" : ", ").append(gpu.uuid + " has ").append(std::to_string(gpu.free[view.resource]));
  }
  return Error(ErrorCode::kInvalidArgument,
               "no GPU of this node has " + AmountText(view.amount, view.resource) + " free: " + list +
                   ". What a container gets lies on one GPU; create the pod again once others have ended, or ask for "
                   "less");
}

Error NoRoomBeside(const ChooserView& view, const Partner& partner) {
  // No waiting would help. Without a healthy GPU it is not known how much one has.
  const std::int64_t most = Most(view);
  if (most > 0 && view.amount > most) return TooMuchFor(view.resource, view.amount, most);
  return Error(ErrorCode::kInvalidArgument, partner.owner + ": " + partner.gpu +
                                                ", where its other part lies, has no " +
                                                AmountText(view.amount, view.resource) +
                                                " free. Create the pod again once others have ended, or ask for less");
}

const GpuRoom* PlannedOf(const std::vector<const PartAsk*>& candidates, const std::vector<const GpuRoom*>& fitting) {
  for (const PartAsk* candidate : candidates) {
    if (candidate->planned_gpu.empty()) continue;
    const auto found = std::ranges::find(fitting, candidate->planned_gpu, &GpuRoom::uuid);
    if (found != fitting.end()) return *found;
  }
  return nullptr;
}

PartPlacement PlacementFor(const ChooserView& view, const std::vector<const PartAsk*>& candidates) {
  const auto says = std::ranges::find_if(candidates, [](const PartAsk* one) { return one->placement.has_value(); });
  return says == candidates.end() ? view.placement : *(*says)->placement;
}

// `partner`: taken if all is as good there.
kube::Result<GpuChoice> ChooseForFirst(const ChooserView& view, const std::optional<Partner>& partner) {
  const std::optional<PartResource> other = CounterpartOf(view.resource);
  std::vector<const GpuRoom*> able;
  for (const GpuRoom& gpu : view.gpus) {
    if (gpu.free[view.resource] >= view.amount) able.push_back(&gpu);
  }
  if (able.empty()) return NoRoom(view);

  const std::vector<const PartAsk*> candidates = Candidates(view);
  std::set<std::int64_t, std::greater<>> counterparts;
  for (const PartAsk* candidate : candidates) counterparts.insert(other ? candidate->amounts[*other] : 0);
  if (candidates.empty() && !other) counterparts.insert(0);
  for (const std::int64_t counterpart : counterparts) {
    std::vector<const GpuRoom*> fitting = able;
    if (other) std::erase_if(fitting, [&](const GpuRoom* gpu) { return gpu->free[*other] < counterpart; });
    if (fitting.empty()) continue;
    if (partner && std::ranges::count(fitting, partner->gpu, &GpuRoom::uuid) > 0) {
      return GpuChoice{partner->gpu, partner};
    }
    if (const GpuRoom* planned = PlannedOf(candidates, fitting)) return GpuChoice{planned->uuid};
    const bool is_spread = PlacementFor(view, candidates) == PartPlacement::kSpread;
    const auto order = [&](const GpuRoom* gpu) { return is_spread ? -Left(*gpu) : Left(*gpu); };
    return GpuChoice{(*std::ranges::min_element(fitting, {}, order))->uuid};
  }
  // It is not known what else the container will ask for, or no GPU has room for that: where there is most.
  return GpuChoice{(*std::ranges::max_element(able, {}, [&](const GpuRoom* gpu) { return gpu->free[*other]; }))->uuid};
}

}  // namespace

std::optional<Partner> FindPartner(const ChooserView& view) {
  const std::optional<PartResource> other = CounterpartOf(view.resource);
  if (!other || (view.last && view.last->is_refused)) return std::nullopt;
  std::optional<Partner> unsure;
  bool is_last_seen = false;
  for (const HeldParts& held : view.held ? *view.held : std::vector<HeldParts>()) {
    const bool holds_last = view.last && HoldsLast(held, *view.last);
    is_last_seen |= holds_last;
    // After a restart of the agent, whoever lacks something is the one.
    if (view.last && !holds_last) continue;
    if (!held.ids.contains(*other) || held.ids.contains(view.resource)) continue;
    const PartAsk* const ask = AskOf(view, held);
    Partner partner{held.gpus().front(), OwnerText(held.pod, held.container), ask != nullptr, true};
    if (ask != nullptr && ask->amounts[view.resource] == view.amount) return partner;
    if (ask == nullptr && holds_last && view.last->is_fresh) unsure = std::move(partner);
  }
  return unsure || is_last_seen ? unsure : UnseenPartner(view, *other);
}

std::optional<kube::ObjectKey> PodToAwait(const ChooserView& view) {
  if (!CounterpartOf(view.resource) || !view.held || !view.asks) return std::nullopt;
  if (!view.last || view.last->is_refused) return std::nullopt;
  for (const HeldParts& held : *view.held) {
    const bool is_complete = held.ids.contains(view.resource);
    if (HoldsLast(held, *view.last) && !is_complete && AskOf(view, held) == nullptr) return held.pod;
  }
  return std::nullopt;
}

kube::Result<GpuChoice> ChooseGpu(const ChooserView& view) {
  const std::optional<Partner> partner = FindPartner(view);
  if (partner && (partner->is_sure || partner->is_likely)) {
    const auto gpu = std::ranges::find(view.gpus, partner->gpu, &GpuRoom::uuid);
    if (gpu != view.gpus.end() && gpu->free[view.resource] >= view.amount) return GpuChoice{gpu->uuid, partner};
    if (partner->is_sure) return NoRoomBeside(view, *partner);
  }
  return ChooseForFirst(view, partner);
}

kube::Error TooMuchFor(PartResource resource, std::int64_t amount, std::int64_t most) {
  return Error(ErrorCode::kInvalidArgument,
               AmountText(amount, resource) + ": a GPU of this node has " + std::to_string(most) +
                   ", and what a container gets lies on one GPU; ask for at most " + std::to_string(most));
}

}  // namespace grus

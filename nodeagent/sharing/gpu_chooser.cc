// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/gpu_chooser.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "crds/types/part_memory.h"
#include "crds/types/sharing_names.h"
#include "nodeagent/sharing/shared_gpus.h"
#include "nodeagent/sharing/whole_gpus.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

constexpr std::int64_t kMostAsked = std::int64_t{1} << 32;  // Users may ask for any number.

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

// Of one GPU: of the resource that is asked for, and of memory, where that is thousandths.
struct GpuAmounts {
  std::int64_t amount = 0, mib = 0;
  bool FitInto(const GpuAmounts& free) const { return amount <= free.amount && mib <= free.mib; }
};
GpuAmounts FreeOf(const GpuRoom& gpu, const ChooserView& view) {
  return {gpu.free[view.resource], view.resource == PartResource::kMilli ? gpu.free_mib : 0};
}

// What `amount` takes of this GPU, for a pod that says `said_mib`.
GpuAmounts OnGpu(const GpuRoom& gpu, const ChooserView& view, std::int64_t amount, std::int64_t said_mib) {
  if (view.resource != PartResource::kMilli) return {amount, 0};
  const std::int64_t whole = std::max<std::int64_t>(gpu.total[view.resource], 1);
  return {amount, said_mib > 0 ? said_mib : gpu.total_mib * amount / whole};
}

// What the container takes of this GPU.
GpuAmounts AskOn(const GpuRoom& gpu, const ChooserView& view, const PartAsk& ask) {
  if (IsForWholeGpus(view.resource, ask.amounts[view.resource])) return OnGpu(gpu, view, gpu.total[view.resource], 0);
  return OnGpu(gpu, view, std::min(ask.amounts[view.resource], kMostAsked), std::min(ask.memory_mib, kMostAsked));
}

// What containers ask for that do not have it yet.
template <typename Predicate>
GpuAmounts SumOfAsks(const ChooserView& view, const GpuRoom& gpu, const Predicate& is_meant) {
  GpuAmounts sum;
  for (const PartAsk& ask : view.asks ? *view.asks : std::vector<PartAsk>()) {
    const auto has_it = [&](const HeldParts& held) { return IsOf(ask, held) && held.ids.contains(view.resource); };
    if (ask.is_init || ask.has_started || !is_meant(ask)) continue;
    if (view.held && std::ranges::any_of(*view.held, has_it)) continue;
    const GpuAmounts on_gpu = AskOn(gpu, view, ask);
    sum.amount += on_gpu.amount;
    sum.mib += on_gpu.mib;
  }
  return sum;
}

// What an init container had is given to the next container of the pod: whether that asks for whole GPUs.
bool IsHandedOnToWhole(const ChooserView& view, const PartAsk& ask) {
  if (!ask.is_init || !view.asks) return false;
  const auto at = std::ranges::find(*view.asks, ask);
  const auto next = at == view.asks->end() ? at : std::next(at);
  return next != view.asks->end() && next->pod == ask.pod &&
         IsForWholeGpus(view.resource, next->amounts[view.resource]);
}

// Of `fitting`, those that are good for others and for the rest of the pod; as far as any is. `said_mib`: by the pod.
std::vector<const GpuRoom*> BestOf(const ChooserView& view, const std::vector<const PartAsk*>& candidates,
                                   std::int64_t said_mib, std::vector<const GpuRoom*> fitting) {
  const kube::ObjectKey* const pod = PodOf(candidates);
  std::map<std::string, GpuAmounts> planned;  // For others.
  for (const GpuRoom* gpu : fitting) {
    planned[gpu->uuid] = SumOfAsks(view, *gpu, [&](const PartAsk& ask) {
      if ((pod != nullptr && ask.pod == *pod) || std::ranges::count(ask.planned_gpus, gpu->uuid) == 0) return false;
      return AskOn(*gpu, view, ask).FitInto(FreeOf(*gpu, view));
    });
  }
  const auto narrow = [&](const auto& is_good) {
    std::vector<const GpuRoom*> good;
    std::ranges::copy_if(fitting, std::back_inserter(good), is_good);
    if (!good.empty()) fitting = std::move(good);
  };
  const auto has_room = [&](const GpuRoom* gpu, const GpuAmounts& wanted) {
    const GpuAmounts free = FreeOf(*gpu, view), taken = planned[gpu->uuid];
    return wanted.FitInto({free.amount - taken.amount, free.mib - taken.mib});
  };
  narrow([&](const GpuRoom* gpu) { return has_room(gpu, OnGpu(*gpu, view, view.amount, said_mib)); });
  if (pod == nullptr) return fitting;
  if (const std::int64_t awaited = WholeGpusAwaited(view, *pod); awaited > 0) {
    const bool is_handed_on = IsHandedOnToWhole(view, *candidates.front());
    narrow([&](const GpuRoom* gpu) { return is_handed_on ? IsFree(*gpu) : !IsFree(*gpu) || FreeGpus(view) > awaited; });
  }
  narrow([&](const GpuRoom* gpu) {
    return view.held && std::ranges::any_of(*view.held, [&](const HeldParts& held) {
             return held.pod == *pod && std::ranges::count(held.gpus(), gpu->uuid) > 0;
           });
  });
  narrow([&](const GpuRoom* gpu) {
    return has_room(gpu, SumOfAsks(view, *gpu, [&](const PartAsk& ask) {
                      return ask.pod == *pod && !IsForWholeGpus(view.resource, ask.amounts[view.resource]);
                    }));
  });
  return fitting;
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

// `said_mib`: as little as anybody who may be asking says.
Error NoMemory(const ChooserView& view, std::int64_t said_mib) {
  if (said_mib == api::kSenselessMemory) {
    return Error(ErrorCode::kInvalidArgument,
                 std::string("annotation ") + api::kMemoryMiBAnnotation +
                     " of the pod: expected MiB of memory for each of its containers that asks for " +
                     std::string(NameOf(view.resource)) + ", as a whole number from 1 on, such as \"8192\"");
  }
  std::string list;
  for (const GpuRoom& gpu : view.gpus) {
    list.append(list.empty() ? "" : ", ").append(gpu.uuid + " has ").append(std::to_string(gpu.free_mib));
    list.append(" of ").append(std::to_string(gpu.total_mib));
  }
  const std::string what = said_mib > 0 ? std::to_string(said_mib) + " MiB" : "in proportion";
  return Error(ErrorCode::kInvalidArgument, "no GPU of this node has " + AmountText(view.amount, view.resource) +
                                                " and memory (" + what + ") free: in MiB, " + list +
                                                "; create the pod again once others have ended, or ask for less (" +
                                                api::kMemoryMiBAnnotation + ")");
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

// Of those that are planned for its pod, the fullest; others of them are for containers that ask for whole GPUs.
const GpuRoom* PlannedOf(const ChooserView& view, const std::vector<const PartAsk*>& candidates,
                         const std::vector<const GpuRoom*>& fitting) {
  for (const PartAsk* candidate : candidates) {
    std::vector<const GpuRoom*> planned;
    std::ranges::copy_if(fitting, std::back_inserter(planned), [&](const GpuRoom* gpu) {
      return std::ranges::count(candidate->planned_gpus, gpu->uuid) > 0;
    });
    const auto is_free = [](const GpuRoom* gpu) { return IsFree(*gpu); };
    const std::int64_t awaited = WholeGpusAwaited(view, candidate->pod);
    if (awaited > 0 && IsHandedOnToWhole(view, *candidate)) std::erase_if(planned, std::not_fn(is_free));
    else if (awaited > 0 && std::ranges::count_if(planned, is_free) <= awaited) std::erase_if(planned, is_free);
    if (!planned.empty()) return *std::ranges::min_element(planned, {}, [](const GpuRoom* gpu) { return Left(*gpu); });
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
  // Beside the amount: of the counterpart, or MiB.
  for (const PartAsk* candidate : candidates) {
    counterparts.insert(other ? candidate->amounts[*other] : candidate->memory_mib);
  }
  if (candidates.empty() && !other) counterparts.insert(0);
  for (const std::int64_t counterpart : counterparts) {
    std::vector<const GpuRoom*> fitting = able;
    std::erase_if(fitting, [&](const GpuRoom* gpu) {
      return other ? gpu->free[*other] < counterpart : gpu->free_mib < OnGpu(*gpu, view, view.amount, counterpart).mib;
    });
    if (fitting.empty()) continue;
    if (partner && std::ranges::count(fitting, partner->gpu, &GpuRoom::uuid) > 0) {
      return GpuChoice{{partner->gpu}, partner};
    }
    if (const GpuRoom* planned = PlannedOf(view, candidates, fitting)) return GpuChoice{{planned->uuid}};
    const std::vector<const GpuRoom*> best = BestOf(view, candidates, other ? 0 : counterpart, std::move(fitting));
    const bool is_spread = PlacementFor(view, candidates) == PartPlacement::kSpread;
    const auto order = [&](const GpuRoom* gpu) { return is_spread ? -Left(*gpu) : Left(*gpu); };
    return GpuChoice{{(*std::ranges::min_element(best, {}, order))->uuid}};
  }
  if (!other) return NoMemory(view, *counterparts.rbegin());
  // It is not known what else the container will ask for, or no GPU has room for that: where there is most.
  return GpuChoice{
      {(*std::ranges::max_element(able, {}, [&](const GpuRoom* gpu) { return gpu->free[*other]; }))->uuid}};
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

std::set<kube::ObjectKey> PodsToAwait(const ChooserView& view) {
  if (!view.held || !view.asks) return {};
  std::set<kube::ObjectKey> unknown = view.listed;
  for (const PartAsk& ask : *view.asks) unknown.erase(ask.pod);
  return unknown;
}

std::vector<const PartAsk*> Candidates(const ChooserView& view) {
  std::vector<const PartAsk*> candidates;
  if (!view.asks) return candidates;
  for (const PartAsk& ask : *view.asks) {
    if (ask.has_started || ask.amounts[view.resource] != view.amount || HoldsAny(view, ask)) continue;
    candidates.push_back(&ask);
  }
  const auto is_listed = [&](const PartAsk* ask) { return view.listed.contains(ask->pod); };
  if (std::ranges::any_of(candidates, is_listed)) std::erase_if(candidates, std::not_fn(is_listed));
  return candidates;
}

const kube::ObjectKey* PodOf(const std::vector<const PartAsk*>& candidates) {
  if (candidates.empty()) return nullptr;
  const kube::ObjectKey& pod = candidates.front()->pod;
  return std::ranges::all_of(candidates, [&](const PartAsk* ask) { return ask->pod == pod; }) ? &pod : nullptr;
}

bool HoldsAny(const ChooserView& view, const PartAsk& ask) {
  return view.held && std::ranges::any_of(*view.held, [&](const HeldParts& held) { return IsOf(ask, held); });
}

std::int64_t PodAmount(const ChooserView& view) {
  const std::vector<const PartAsk*> candidates = Candidates(view);
  const kube::ObjectKey* const pod = PodOf(candidates);
  std::int64_t sum = 0;
  for (const PartAsk& ask : pod != nullptr ? *view.asks : std::vector<PartAsk>()) {
    if (ask.pod == *pod && !ask.is_init) sum += std::min(ask.amounts[view.resource], kMostAsked);
  }
  return sum;
}

std::int64_t SaidMemory(const ChooserView& view) {
  const std::vector<const PartAsk*> candidates = Candidates(view);
  if (PodOf(candidates) == nullptr || IsForWholeGpus(view.resource, view.amount)) return 0;
  const std::int64_t said = candidates.front()->memory_mib;
  return said == api::kSenselessMemory ? 0 : said;
}

kube::Result<GpuChoice> ChooseGpu(const ChooserView& view) {
  if (IsForWholeGpus(view.resource, view.amount)) return ChooseWholeGpus(view);
  const std::optional<Partner> partner = FindPartner(view);
  if (partner && (partner->is_sure || partner->is_likely)) {
    const auto gpu = std::ranges::find(view.gpus, partner->gpu, &GpuRoom::uuid);
    if (gpu != view.gpus.end() && gpu->free[view.resource] >= view.amount) return GpuChoice{{gpu->uuid}, partner};
    if (partner->is_sure) return NoRoomBeside(view, *partner);
  }
  kube::Result<GpuChoice> choice = ChooseForFirst(view, partner);
  if (choice) {
    choice->pod_amount = PodAmount(view);
    choice->memory_mib = SaidMemory(view);
  }
  return choice;
}

kube::Error TooMuchFor(PartResource resource, std::int64_t amount, std::int64_t most) {
  return Error(ErrorCode::kInvalidArgument,
               AmountText(amount, resource) + ": a GPU of this node has " + std::to_string(most) +
                   ", and what a container gets lies on one GPU; ask for at most " + std::to_string(most));
}

}  // namespace grus

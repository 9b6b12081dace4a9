// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gang_message.h"

#include <algorithm>
#include <utility>

#include "clientlib/model/quantity.h"
#include "controllers/policy/claimed_gpus.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/waited.h"
#include "controllers/queues/wording.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

// CPU in thousandths ("1200m") where needed, memory with its suffix.
std::string Amount(std::int64_t amount, const std::string& resource) {
  if (resource == "cpu") return kube::ToText(kube::Quantity::OfMilli(amount));
  if (resource == "memory" || resource == "ephemeral-storage") {
    return kube::ToText(kube::Quantity(amount, kube::Quantity::Format::kBinarySi));
  }
  return std::to_string(amount);
}

// How much of the resource the first `count` members ask for.
std::int64_t Wanted(const GangDemand& demand, const std::string& resource, int count) {
  Resources sum;
  for (int i = 0; i < count && i < static_cast<int>(demand.members.size()); ++i) {
    sum += demand.members[static_cast<std::size_t>(i)]->request;
  }
  return sum.Amount(resource);
}

std::string Ordinal(int n) {
  static const char* const kWords[] = {"", "first", "second", "third"};
  if (n >= 1 && n <= 3) return kWords[n];
  const int tens = n % 100, ones = n % 10;
  if (tens >= 11 && tens <= 13) return std::to_string(n) + "th";
  return std::to_string(n) + (ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th");
}

std::string NameOf(const std::string& owner) {
  if (owner.empty()) return "other pods";
  return IsOwnerOfOthers(owner) ? "other pods of namespace " + owner.substr(0, owner.size() - 1) : owner;
}

std::string HeldBy(const GangStanding& standing) {
  std::string text;
  for (const DeviceUse& use : standing.uses) {
    text += ", " + std::to_string(use.devices) + " by " + NameOf(use.owner);
  }
  return text;
}

// Why so few nodes count, where the user may wonder.
std::string ByVolumes(const GangDemand& demand) {
  const auto has_volumes = [](const ShapePtr& shape) { return !shape->volume_affinity.empty(); };
  return std::ranges::any_of(demand.members, has_volumes) ? "; only nodes where its volumes can be used count" : "";
}

std::string At(std::int64_t unix_seconds) { return kube::ToText(AtUnixSeconds(unix_seconds)); }

// "a/one, a/two and 3 more".
std::string ListOf(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) {
    const bool is_last = i > 0 && i + 1 == names.size();
    text += (is_last ? " and " : i > 0 ? ", " : "") + names[i];
  }
  return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " more" : text;
}

// " that asks for 9 nvidia.com/gpu and 1 rdma/hca": of devices and the like. Empty: members ask for none, or for
// several such sets.
std::string WithDevices(const GangDemand& demand) {
  std::vector<std::string> amounts;
  for (const ShapePtr& member : demand.members) {
    std::vector<std::string> own;
    for (const auto& [resource, amount] : member->request.extended) {
      if (resource.find('/') != std::string::npos) own.push_back(Amount(amount, resource) + " " + resource);
    }
    if (own.empty() || own == amounts) continue;
    if (!amounts.empty()) return {};
    amounts = std::move(own);
  }
  return amounts.empty() ? std::string() : " that asks for " + ListOf(amounts);
}

template <typename Predicate>
bool AsksForSome(const GangDemand& demand, const Predicate& is_meant) {
  return std::ranges::any_of(demand.members, [&](const ShapePtr& member) { return is_meant(member->request); });
}

// More than one GPU has, and not whole ones either.
bool IsNoPart(const Resources& request) {
  return request.Extended(api::kGpuMilliResource) > kWholeGpuMilli && WholeGpusOf(request) == 0;
}

std::string Never(const GangDemand& demand, const GangStanding& standing, const PendingWords& words) {
  const int needed = std::max(1, demand.needed);
  if (standing.eligible_nodes == 0) {
    return "no node can hold a " + std::string(words.member) + WithDevices(demand) +
           (AsksForSome(demand, IsNoPart) ? "; let its containers ask for parts that fit on one GPU together, or all "
                                            "of them for multiples of 1000: whole GPUs"
                                          : "; check its resources, node selector, affinity and tolerations") +
           ByVolumes(demand);
  }
  const bool can_be_fewer = !words.minimum.empty() && standing.capacity > 0;
  const std::string advice =
      ": lower " + (can_be_fewer ? std::string(words.minimum) : std::string("the requests")) + " or add nodes";
  const std::string& resource = standing.lacking;
  const std::int64_t wanted = resource.empty() ? 0 : Wanted(demand, resource, needed);
  if (!resource.empty() && wanted > standing.lacking_total) {
    return "needs " + Amount(wanted, resource) + " " + resource + "; the nodes it may use have " +
           Amount(standing.lacking_total, resource) + " in all" + advice + ByVolumes(demand);
  }
  return "needs room for " + Count(needed, words.pod) + "; the " + Count(standing.eligible_nodes, "node") +
         " it may use can hold " + std::to_string(standing.capacity) + " even when empty" + advice + ByVolumes(demand);
}

std::string WhatIsNeeded(const GangDemand& demand, const GangStanding& standing, const PendingWords& words) {
  const int needed = std::max(1, demand.needed);
  const std::string resource(standing.lacking.empty() ? demand.members.front()->request.Accelerator()
                                                      : std::string_view(standing.lacking));
  return Count(needed, words.pod) + (needed == 1 ? " needs " : " need ") +
         (resource.empty() ? "room" : Amount(Wanted(demand, resource, needed), resource) + " " + resource);
}

std::string WhatIsMissing(const GangDemand& demand, const GangStanding& standing) {
  if (!standing.blocked_by.empty() && standing.fitting >= std::max(1, demand.needed)) {
    return "there is room, which is reserved for " + standing.blocked_by;
  }
  std::string text = std::to_string(standing.fitting) + " of " + std::to_string(std::max(1, demand.needed)) +
                     (standing.fitting == 1 ? " has room" : " have room");
  if (!standing.closed.empty()) {
    return text + ": " + (standing.closed.size() == 1 ? "node " : "nodes ") + ListOf(standing.closed) +
           (standing.closed.size() == 1 ? " is" : " are") + " not ready or cordoned";
  }
  if (!standing.blocked_by.empty()) return text + ": the rest is reserved for " + standing.blocked_by;
  if (standing.lacking.empty()) {
    return text + ": its affinity, spread or host ports, or those of other pods, leave no place for the rest";
  }
  const std::int64_t wanted = Wanted(demand, standing.lacking, std::max(1, demand.needed));
  if (IsGpuPart(standing.lacking) && wanted <= standing.lacking_free) {
    const bool asks_for_whole = AsksForSome(demand, [](const Resources& asked) { return WholeGpusOf(asked) > 0; });
    return text + ": " + Amount(standing.lacking_free, standing.lacking) + " of " +
           Amount(standing.lacking_total, standing.lacking) + " " + standing.lacking +
           " are free, but no node has the " +
           (asks_for_whole ? "part or the whole GPUs of one more member" : "part of one more member on one GPU") +
           ", with all else that it asks for";
  }
  return text + ": " + Amount(standing.lacking_total - standing.lacking_free, standing.lacking) + " of " +
         Amount(standing.lacking_total, standing.lacking) + " " +
         (standing.lacking == kGpuResource ? "GPUs" : standing.lacking) + " are held" +
         (IsAccelerator(standing.lacking) ? HeldBy(standing) : "");
}

std::string WhoYields(const YieldAnswer& answer) {
  if (!answer.givers.empty()) {
    return "; " + ListOf(answer.givers) + (answer.givers.size() == 1 ? " gives" : " give") + " GPUs to it" +
           (answer.by > 0 ? " by " + At(answer.by) : "");
  }
  if (answer.outcome == ReclaimOutcome::kNotEntitled) return "; no other queue has to yield to it";
  if (answer.outcome == ReclaimOutcome::kNotEnough) return "; too few of those that run may be stopped for it now";
  return {};
}

}  // namespace

std::string WhyPending(const GangDemand& demand, const GangStanding& standing, const PendingWords& words) {
  if (demand.members.empty()) return "no members wait";
  const std::string why = WhyNoRoom(demand, standing, words);
  return standing.is_hopeless() ? why : WhatIsNeeded(demand, standing, words) + "; " + why;
}

std::string WhyNoRoom(const GangDemand& demand, const GangStanding& standing, const PendingWords& words) {
  if (standing.is_hopeless()) return Never(demand, standing, words);
  std::string text =
      standing.queue_refusal.empty() ? WhatIsMissing(demand, standing) + ByVolumes(demand) : standing.queue_refusal;
  if (standing.position > 0) text += "; " + Ordinal(standing.position) + " in the queue";
  if (standing.has_reservation) text += ", what becomes free is kept from other gangs and jobs";
  if (standing.yields) text += WhoYields(*standing.yields);
  if (standing.reserves_from)
    text += "; what becomes free is kept from other gangs and jobs again at " + At(*standing.reserves_from);
  if (standing.expected_start) text += "; expected to start at " + At(*standing.expected_start);
  return text;
}

}  // namespace grus

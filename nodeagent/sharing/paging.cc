// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/paging.h"

#include <tuple>

#include "clientlib/model/label_selector.h"
#include "crds/types/part_memory.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using kube::ErrorCode;

// Nodes that several pools select are in the first one.
auto OrderOf(const PagingPool& pool) { return std::tie(pool.metadata.creation_timestamp, pool.metadata.name); }

std::string Refusal(const std::string& asks, const PagingAllowance& allowance, std::int64_t part_mib) {
  if (allowance.pool.empty()) {
    return asks +
           ", and no NodePool selects this node: create the pod again without it, or a NodePool with "
           "spec.pagedMemoryPercent";
  }
  const std::string pool = asks + ", and NodePool " + allowance.pool + " allows ";
  const std::int64_t most = part_mib * allowance.percent / 100;
  if (most == 0) return pool + "none: create the pod again without it, or raise spec.pagedMemoryPercent of the pool";
  return pool + std::to_string(allowance.percent) + " % of its part of " + std::to_string(part_mib) +
         " MiB: create the pod again with at most " + std::to_string(most) +
         ", or raise spec.pagedMemoryPercent of the pool";
}

}  // namespace

std::span<const kube::FieldInfo> PagingPoolSpec::Fields() {
  using T = PagingPoolSpec;
  static constexpr kube::FieldInfo kFields[] = {
      kube::Field<&T::node_selector>("nodeSelector"),
      kube::Field<&T::paged_memory_percent>("pagedMemoryPercent"),
  };
  return kFields;
}

const kube::Kind& PagingPool::ResourceKind() {
  static constexpr kube::FieldInfo kFields[] = {kube::Field<&PagingPool::spec>("spec")};
  static const kube::Kind kKind = kube::MakeKind<PagingPool>({.group = "ai.centauruscloud.io",
                                                              .version = "v1alpha1",
                                                              .kind = "NodePool",
                                                              .plural = "nodepools",
                                                              .is_namespaced = false,
                                                              .fields = kFields});
  return kKind;
}

PagingAllowance AllowanceOf(const kube::StringMap& node_labels,
                            const std::vector<std::shared_ptr<const PagingPool>>& pools) {
  const PagingPool* first = nullptr;
  for (const auto& pool : pools) {
    const kube::LabelSelector selector{pool->spec.node_selector, {}};
    if (!selector.Matches(node_labels)) continue;
    if (first == nullptr || OrderOf(*pool) < OrderOf(*first)) first = pool.get();
  }
  if (first == nullptr) return {};
  return {.pool = std::string(first->metadata.name), .percent = first->spec.paged_memory_percent};
}

kube::Status CheckPaging(const HeldParts& starting, const PagingAllowance& allowance, std::span<const SharedGpu> gpus) {
  const std::int64_t wanted = starting.paged_mib.value_or(0);
  if (wanted == 0) return {};
  const auto refused = [&](const std::string& why, ErrorCode code = ErrorCode::kInvalidArgument) {
    return kube::Error(code, OwnerText(starting.pod, starting.container) + ": " + why);
  };
  if (wanted == api::kSenselessMemory) {
    return refused(std::string("annotation ") + api::kPagedMiBAnnotation +
                   " of the pod: expected MiB of memory beside its part, as a whole number from 1 on; create the pod "
                   "again with such a number, or without it");
  }
  const std::string asks =
      "it asks for " + std::to_string(wanted) + " MiB of over-subscribed memory (" + api::kPagedMiBAnnotation + ")";
  if (starting.enforcement != Enforcement::kCooperative) {
    return refused(asks +
                   ", and was given its part without cooperative limits, so that nothing pages: create the pod "
                   "again without it, or for a node that has the label " +
                   api::kEnforcementLabel + "=cooperative by then");
  }
  if (!allowance.problem.empty()) {
    return refused(
        asks + ", and what NodePools allow is not known now, so that it can start later: " + allowance.problem,
        ErrorCode::kUnavailable);
  }
  std::int64_t part_mib = 0;
  for (const GpuPart& part : PartsByGpu(starting, gpus)) part_mib += part.memory_mib;
  if (part_mib == 0) {
    return refused(asks + ", and how much memory its GPU has is not known now; it can start later",
                   ErrorCode::kUnavailable);
  }
  if (wanted <= part_mib * allowance.percent / 100) return {};
  return refused(Refusal(asks, allowance, part_mib));
}

}  // namespace grus

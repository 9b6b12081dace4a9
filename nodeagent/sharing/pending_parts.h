// SPDX-License-Identifier: Apache-2.0
// Which containers of this node ask for parts of GPUs, by the API server.
//
// It may lag behind the kubelet, which has a watch of its own; who holds what is known by PodResources alone.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/model/meta.h"
#include "nodeagent/node_pods.h"
#include "nodeagent/sharing/gpushare_assumption.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus {

struct PartAsk {
  kube::ObjectKey pod = {};
  std::string container = {};
  PartAmounts amounts = {};                     // More than any GPU has, for whatever cannot be given.
  std::vector<std::string> planned_gpus = {};   // UUIDs; several for whole GPUs.
  std::optional<PartPlacement> placement = {};  // As the pod says.
  std::optional<GpushareAssumption> assumed = {};
  std::int64_t memory_mib = 0;  // Said by the pod, of thousandths of one GPU; see MemoryMiBSaidBy().
  std::int64_t paged_mib = 0;   // Likewise, of each; see PagedMiBSaidBy().
  bool is_init = false;         // An init container: PodResources does not list it.
  bool has_started = false;     // The container has, once: it holds what it asked for.
  friend bool operator==(const PartAsk&, const PartAsk&) = default;
};

class PendingParts {
 public:
  virtual ~PendingParts() = default;
  // Of pods that have not ended, the oldest pod first, init containers before others. nullopt: nothing is known so far.
  // Thread-safe.
  virtual std::optional<std::vector<PartAsk>> Asks() const = 0;
  // Waits until the API server has shown all these pods, a second at most: the kubelet may have heard of them first.
  // Thread-safe.
  virtual void Await(const std::set<kube::ObjectKey>& pods) const = 0;
};

PartAmounts AmountsOf(const PartLimits& limits);
bool AsksForParts(const NodePod& pod);

class NodePendingParts final : public PendingParts {
 public:
  // Both must outlive it.
  NodePendingParts(const NodePods& pods, const kube::Clock& clock) : pods_(pods), clock_(clock) {}
  std::optional<std::vector<PartAsk>> Asks() const override;
  void Await(const std::set<kube::ObjectKey>& pods) const override;

 private:
  const NodePods& pods_;
  const kube::Clock& clock_;
};

}  // namespace grus

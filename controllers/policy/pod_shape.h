// SPDX-License-Identifier: Apache-2.0
// What placement must know of a pod.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "clientlib/model/core_v1.h"
#include "clientlib/model/string_map.h"
#include "controllers/policy/resources.h"
#include "controllers/queues/queue_spec.h"

namespace grus {

// A toleration without a key and with the operator Exists tolerates all taints.
bool Tolerates(const kube::Toleration& toleration, const kube::Taint& taint);

// A port of the node itself.
struct HostPort {
  std::int32_t port = 0;
  std::string protocol, address;  // Empty: TCP, all addresses (as is 0.0.0.0).
  bool ConflictsWith(const HostPort& other) const;
  friend bool operator==(const HostPort&, const HostPort&) = default;
};

struct PodShape {
  // Which nodes, looked at alone, can hold it.
  Resources request;
  std::map<std::string, std::string> node_selector;
  std::vector<kube::Toleration> tolerations;        // Without their seconds.
  kube::Box<kube::NodeSelector> node_affinity;      // None: any.
  std::vector<kube::NodeSelector> volume_affinity;  // Where its volumes can be used: each must match.
  std::string pool;                                 // Of whose GPUs its queue may use some; empty: any.

  // Of nodes and their GPUs, if it asks for a part of one; empty: as the node or its pool says.
  std::optional<PoolPlacement> placement;

  // What the pod requires of other pods. Preferences are left to the scheduler.
  std::vector<kube::PodAffinityTerm> affinity, anti_affinity;
  std::vector<kube::TopologySpreadConstraint> spread;  // Those with DoNotSchedule.
  std::vector<HostPort> host_ports;

  // What other pods' terms look at.
  std::string ns;
  kube::StringMap labels;

  // Whether it requires anything of other pods.
  bool has_pod_constraints() const {
    return !affinity.empty() || !anti_affinity.empty() || !spread.empty() || !host_ports.empty();
  }
  friend bool operator==(const PodShape&, const PodShape&) = default;
};

using ShapePtr = std::shared_ptr<const PodShape>;

// One shape for all pods that are alike to placement: labels that only tell pods of one set apart do not count. Not
// thread-safe; the owner serialises access. Shapes may outlive the pool.
class ShapePool {
 public:
  // The equal shape that somebody still holds, else a new one.
  ShapePtr Share(PodShape shape);

 private:
  std::unordered_map<std::size_t, std::vector<std::weak_ptr<const PodShape>>> shapes_;  // By hash.
  std::size_t swept_at_ = 0;
};

// The part of the shape that decides which nodes, looked at alone, can hold it, and which of them it prefers.
PodShape AloneOf(const PodShape& shape);

// Whether any node of their pools, looked at alone, holds as many of one as of the other.
bool FitAlike(const PodShape& a, const PodShape& b);

// Whether a term of a pod in `own_ns` is about `other`. Namespaces are known by name only: a selector that asks for
// other labels of a namespace gives `if_unknown`.
bool TermMatches(const kube::PodAffinityTerm& term, const std::string& own_ns, const PodShape& other, bool if_unknown);

}  // namespace grus

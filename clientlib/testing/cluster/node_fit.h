// SPDX-License-Identifier: Apache-2.0
// Whether a pod fits on a node, as the default scheduler's filters see it. Pure functions.
//
// Lacks: pod affinity (but not anti-affinity), selectors of namespaces in its terms, topology spread, volumes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/model/affinity.h"
#include "clientlib/model/json.h"
#include "clientlib/model/pod.h"
#include "clientlib/testing/api_server/fake_api_server.h"

namespace kube::testing {

using Amounts = std::map<std::string, std::int64_t, std::less<>>;  // By resource, in thousandths.

// What the pod's containers ask for, also at its start by init containers, and "pods": 1.
Amounts RequestsOf(const Json& pod);
void Add(Amounts& to, const Amounts& what, int sign = 1);

// The toleration of the pod that lets it live with `taint`; null if there is none.
const Json* TolerationOf(const Json& pod, const Json& taint);

// What a pod asks of nodes, and what others ask about it.
struct PodNeeds {
  std::string ns;
  StringMap labels;
  std::int64_t priority = 0;
  Amounts requests;
  std::vector<ContainerPort> host_ports;
  Affinity affinity;
  Json object;  // For its tolerations and its node selector.
};
PodNeeds NeedsOf(const Json& pod);

struct FitNode {
  Json object;
  StringMap labels;
  Amounts allocatable;
};
FitNode FitNodeOf(const Json& node);

// What the pods on a node use.
struct Load {
  Amounts used;
  std::vector<ContainerPort> host_ports;

  void Add(const PodNeeds& pod);
  void Remove(const PodNeeds& pod);  // REQUIRES: it was added.
};

// Where others are that a pod must not be with: labels of nodes, as its own terms and as theirs have it.
struct Repulsion {
  std::set<std::pair<std::string, std::string>> own, theirs;

  // `node` is where `other` is.
  void Add(const PodNeeds& pod, const PodNeeds& other, const FitNode& node);
};

struct Misfit {
  std::vector<std::string> reasons;  // In the scheduler's words; empty: it fits.
  bool is_final = false;             // Would not fit either if all other pods went.
};
Misfit FitOf(const PodNeeds& pod, const FitNode& node, const Load& load, const Repulsion& repulsion);

// "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. ..." REQUIRES: none fits. `preemption` is what came of it;
// nothing: it found room.
std::string UnschedulableMessage(const std::map<std::string, Misfit>& nodes, const std::string& preemption);
// Of preemption that found no victims.
std::string NoVictimsMessage(const std::map<std::string, Misfit>& nodes);

}  // namespace kube::testing

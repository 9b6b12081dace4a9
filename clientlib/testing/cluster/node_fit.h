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

// What the pod's containers request, including init containers at its start, and "pods": 1.
Amounts RequestsOf(const Json& pod);
void Add(Amounts& to, const Amounts& what, int sign = 1);

// The pod's toleration of `taint`; null if there is none.
const Json* TolerationOf(const Json& pod, const Json& taint);

// What a pod needs of nodes, and what other pods' terms check of it.
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

// Where a pod must not run because of other pods: labels of nodes, by its own terms and by theirs.
struct Repulsion {
  std::set<std::pair<std::string, std::string>> own, theirs;

  // `node` is where `other` is.
  void Add(const PodNeeds& pod, const PodNeeds& other, const FitNode& node);
};

struct Misfit {
  std::vector<std::string> reasons;  // In the scheduler's words; empty: it fits.
  bool is_final = false;             // It would not fit even without all other pods.
};
Misfit FitOf(const PodNeeds& pod, const FitNode& node, const Load& load, const Repulsion& repulsion);

// "0/4 nodes are available: 4 Insufficient nvidia.com/gpu. ..." REQUIRES: none fits. `preemption` is its result; empty:
// it found room.
std::string UnschedulableMessage(const std::map<std::string, Misfit>& nodes, const std::string& preemption);
// Of preemption that found no victims.
std::string NoVictimsMessage(const std::map<std::string, Misfit>& nodes);

}  // namespace kube::testing

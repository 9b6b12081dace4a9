// SPDX-License-Identifier: Apache-2.0
// How many more pods the ResourceQuotas of a namespace admit, as the API server decides it when a pod is created. Pure
// functions.
//
// Counts by what the server counts by: status.hard and status.used. Ignores what a server is configured to refuse where
// no quota covers it, and pod affinity that is only preferred (scope CrossNamespacePodAffinity).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clientlib/model/pod.h"
#include "clientlib/model/resource_quota.h"

namespace grus {

using QuotaList = std::vector<std::shared_ptr<const kube::ResourceQuota>>;

// What quotas see of a pod.
struct QuotaPod {
  std::string priority_class;  // As the server will fill it in.
  bool is_best_effort = false, has_deadline = false, names_namespaces = false;
  // By the names that quotas have for it: pods, requests.cpu, limits.memory, ...
  std::map<std::string, kube::Quantity, std::less<>> usage;
  // A quota on cpu or memory needs all containers to state it: what is not stated, and by which container.
  std::map<std::string, std::string, std::less<>> unstated;
};

// REQUIRES: each limit has a request, as the server's defaults ensure.
QuotaPod QuotaPodOf(const kube::Pod& pod);

// Pods that do not exist yet, and are admitted before others.
struct PodsToCome {
  const QuotaPod* pod = nullptr;
  int count = 1;
};

struct QuotaRoom {
  int copies = 0;
  // The quota that limits `copies`, its resource, and why: "requests.nvidia.com/gpu: 7 of 8 used". Empty: none.
  std::string quota, resource, why;
  bool is_unstated = false;  // The pod does not state its need; what others use does not matter.
};

// How many more pods like this one are admitted, at most `at_most`. `quotas` are those of its namespace. If several
// limit alike, names the first.
QuotaRoom QuotaRoomFor(const QuotaList& quotas, const QuotaPod& pod, const std::vector<PodsToCome>& to_come,
                       int at_most);

// Whether the quota may admit pods after the change that it refused before. Most changes only raise what is used: each
// new pod makes one. Null: the quota does not exist.
bool MayAdmitMore(const kube::ResourceQuota* before, const kube::ResourceQuota* after);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// How many more pods the ResourceQuotas of a namespace admit, as the API server decides it when a pod is created. Pure
// functions.
//
// Counted is what the server counts by: status.hard and status.used. Not looked at: what a server is configured to
// refuse where no quota covers it, and pod affinity that is only preferred (scope CrossNamespacePodAffinity).
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
  // A quota on cpu or memory takes only pods whose containers all state it: what is not stated, and by which container.
  std::map<std::string, std::string, std::less<>> unstated;
};

// REQUIRES: what has a limit has a request, as the server's defaults see to it.
QuotaPod QuotaPodOf(const kube::Pod& pod);

// Pods that do not exist yet and come first for what is left.
struct PodsToCome {
  const QuotaPod* pod = nullptr;
  int count = 1;
};

struct QuotaRoom {
  int copies = 0;
  // The quota that admits no more than these, of what, and why: "requests.nvidia.com/gpu: 7 of 8 used". Empty: none.
  std::string quota, resource, why;
  bool is_unstated = false;  // The reason is not the use of others: the pod does not state its need.
};

// So many pods like this one, beyond those that exist; at most `at_most`. `quotas` are those of its namespace. Of
// several that limit alike the first is named.
QuotaRoom QuotaRoomFor(const QuotaList& quotas, const QuotaPod& pod, const std::vector<PodsToCome>& to_come,
                       int at_most);

// Whether one may admit pods after the change that it did not admit before. Most changes of a quota are not
// of that kind: each new pod makes one. Null: it does not exist.
bool MayAdmitMore(const kube::ResourceQuota* before, const kube::ResourceQuota* after);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/needed_rights.h"

#include <algorithm>
#include <unordered_set>

#include "clientlib/runtime/access_reviewer.h"
#include "clientlib/runtime/parallel.h"
#include "controllers/cluster/lease_watch.h"
#include "controllers/manager/leader_endpoint.h"
#include "controllers/policy/gpushare_gpus.h"

namespace grus {
namespace {

using kube::Result;
using kube::Status;

enum class Where { kManaged, kCluster, kOwn };  // The managed namespaces; all; that of the lease.

struct Row {
  std::string_view needed_by;  // Controllers, separated by blanks. Empty: all of them.
  std::string_view group;
  std::string_view resources, verbs;  // Separated by blanks.
  std::string_view purpose;
  Where where = Where::kManaged;
};

constexpr std::string_view kGrus = "ai.centauruscloud.io";
constexpr std::string_view kEverybody = "";
constexpr Row kRows[] = {
    {kEverybody, "", "pods persistentvolumeclaims", "list watch", "where GPUs are free"},
    {kEverybody, "resource.k8s.io", "resourceclaims resourceclaimtemplates", "list watch", "devices of pods"},
    {kEverybody, "events.k8s.io", "events", "create patch", "events for users"},
    {kEverybody, "", "nodes persistentvolumes", "list watch", "where GPUs are free", Where::kCluster},
    {kEverybody, "storage.k8s.io", "storageclasses", "list watch", "where volumes can be", Where::kCluster},
    {kEverybody, "resource.k8s.io", "deviceclasses resourceslices", "list watch", "devices of nodes", Where::kCluster},
    {"elastic gang", "", "pods", "get patch delete", "starting pods together"},
    {"elastic gang", "", "pods/status", "patch", "starting pods together"},
    {"elastic", kGrus, "elastichorovodjobs", "get list watch delete", "ElasticHorovodJobs"},
    {"elastic", kGrus, "elastichorovodjobs/status", "patch", "the status of jobs"},
    {"elastic", kGrus, "elastichorovodjobs/finalizers", "update", "children of jobs"},
    {"elastic", "", "pods", "create", "workers"},
    {"elastic", "", "services configmaps", "get list watch create patch delete", "children of jobs"},
    {"elastic", "batch", "jobs", "get list watch create patch delete", "launchers"},
    {"elastic", "", "secrets", "create", "ssh keys of jobs"},
    {"elastic", "", "resourcequotas", "list watch", "how many pods a quota allows"},
    {"elastic", "events.k8s.io", "events", "list", "why pods are missing"},
    {"elastic", "", "pods/log", "get", "speed and failures of trainings"},
    {"elastic", "scheduling.k8s.io", "priorityclasses", "list watch", "priorities of jobs", Where::kCluster},
    {"gang", "scheduling.x-k8s.io", "podgroups", "list watch", "PodGroups"},
    {"gang", "scheduling.sigs.k8s.io", "podgroups", "list watch", "PodGroups"},
    {"gang", "scheduling.x-k8s.io", "podgroups/status", "patch", "the status of PodGroups"},
    {"gang", "scheduling.sigs.k8s.io", "podgroups/status", "patch", "the status of PodGroups"},
    {"elastic+gang", "scheduling.x-k8s.io", "podgroups", "get create patch delete", "the PodGroups of jobs"},
    {"trial", kGrus, "trialjobs", "get list watch", "TrialJobs"},
    {"trial", kGrus, "trialjobs/status", "patch", "the status of TrialJobs"},
    {"trial", kGrus, "trialjobs/finalizers", "update", "the jobs of trials"},
    {"trial", kGrus, "elastichorovodjobs", "create patch", "the jobs of trials"},
    {"trial", kGrus, "workloadprofiles", "get list watch create patch delete", "profiles", Where::kCluster},
    {"trial", kGrus, "workloadprofiles/status", "patch", "profiles", Where::kCluster},
    {"queues", kGrus, "gpuqueues nodepools", "list watch", "queues", Where::kCluster},
    {"queues", kGrus, "gpuqueues/status nodepools/status", "patch", "the status of queues", Where::kCluster},
    {"queues", "", "namespaces", "list watch", "whose queue a namespace has", Where::kCluster},
    {"extender", "", "pods", "get patch", "telling a scheduler of room for a pod"},
    {"extender", kGrus, "workloadprofiles", "list watch", "how fast pods are beside others", Where::kCluster},
    {"extender", "", "pods/binding", "create", "binding pods with parts of GPUs"},
    {"gang", "", "pods", "get create delete", "whether the scheduler honours nominations", Where::kOwn},
    {"gang", "", "pods/status", "patch", "whether the scheduler honours nominations", Where::kOwn},
};

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

// "pods/status": "pods" and "status".
std::pair<std::string_view, std::string_view> PartsOf(std::string_view resource) {
  const std::size_t slash = std::min(resource.find('/'), resource.size());
  return {resource.substr(0, slash), resource.substr(std::min(slash + 1, resource.size()))};
}

bool IsNeeded(std::string_view by, const Options& options) {
  if (by.empty()) return true;
  if (by == "elastic+gang") return options.Runs("elastic") && options.Runs("gang");
  const std::vector<std::string_view> controllers = Words(by);
  return std::any_of(controllers.begin(), controllers.end(),
                     [&](std::string_view controller) { return options.Runs(controller); });
}

std::vector<std::string> NamespacesOf(Where where, const Options& options) {
  if (where == Where::kOwn) return {options.own_namespace};
  return where == Where::kManaged && !options.namespaces.empty() ? options.namespaces : std::vector<std::string>{""};
}

}  // namespace

std::string Right::Text() const {
  std::string text = std::string(verb) + ' ';
  const auto [kind, subresource] = PartsOf(resource);
  text.append(kind);
  if (!group.empty()) text.append(".").append(group);
  if (!subresource.empty()) text.append("/").append(subresource);
  if (!name.empty()) text.append(" ").append(name);
  if (!ns.empty()) text.append(" in ").append(ns);
  return text;
}

std::vector<Right> NeededRights(const Options& options) {
  std::vector<Right> rights;
  std::unordered_set<std::string> known;
  const auto add = [&](Right right) {
    if (known.insert(right.Text()).second) rights.push_back(std::move(right));
  };
  for (const Row& row : kRows) {
    if (!IsNeeded(row.needed_by, options)) continue;
    for (const std::string& ns : NamespacesOf(row.where, options)) {
      for (const std::string_view resource : Words(row.resources)) {
        for (const std::string_view verb : Words(row.verbs)) add({verb, row.group, resource, ns, "", row.purpose});
      }
    }
  }
  constexpr std::string_view kLeases = "coordination.k8s.io";
  if (options.leader_elect) {
    for (const std::string_view verb : {"get", "patch"}) {
      add({verb, kLeases, "leases", options.own_namespace, options.leader_elect_name, "who leads"});
    }
    add({"create", kLeases, "leases", options.own_namespace, "", "who leads"});
  }
  for (const std::string_view verb : {"list", "watch"}) {
    for (const std::string& ns :
         options.Runs("gang") ? options.scheduler_lease_namespaces : std::vector<std::string>()) {
      for (const char* lease : {kSchedulerLease, kSchedulerPluginsLease}) {
        add({verb, kLeases, "leases", ns, lease, "whether a scheduler leads"});
      }
    }
    if (!options.namespaces.empty() && options.count_all_pods) {
      add({verb, "", "pods", "", "", "GPUs held in other namespaces"});
    }
  }
  if (options.RecordsUsage()) {
    for (const std::string_view verb : {"get", "list", "watch", "create", "patch", "delete"}) {
      add({verb, kGrus, "workloadprofiles", "", "", "profiles"});
    }
    add({"patch", kGrus, "workloadprofiles/status", "", "", "profiles"});
    for (const std::string& ns : NamespacesOf(Where::kManaged, options)) {
      for (const std::string_view verb : {"get", "list", "watch"}) {
        add({verb, kGrus, "elastichorovodjobs", ns, "", "ElasticHorovodJobs"});
      }
      add({"get", "batch", "jobs", ns, "", "whose pods use GPUs"});
      add({"get", "apps", "replicasets", ns, "", "whose pods use GPUs"});
      add({"get", "scheduling.x-k8s.io", "podgroups", ns, "", "whose pods use GPUs"});
      for (const OwnerKind& kind : options.owner_kinds) {
        add({"get", kind.group, kind.resource, ns, "", "whose pods use GPUs"});
        if (options.alnair_annotations) add({"patch", kind.group, kind.resource, ns, "", "Alnair's annotations"});
      }
      if (!options.alnair_annotations) continue;
      add({"patch", "", "pods", ns, "", "Alnair's annotations"});
      add({"patch", kGrus, "elastichorovodjobs", ns, "", "Alnair's annotations"});
      add({"patch", "batch", "jobs", ns, "", "Alnair's annotations"});
    }
  }
  for (const std::string_view verb : {"list", "watch"}) {
    if (options.Runs("extender"))
      add({verb, "", "configmaps", kUnhealthyGpusNamespace, "", "GPUs that are out of use"});
  }
  if (options.Runs("extender") && !options.extender_service.empty()) {
    constexpr std::string_view kDiscovery = "discovery.k8s.io";
    const std::string slice = SliceName(options.extender_service, options.extender_pod_address);
    add({"patch", kDiscovery, "endpointslices", options.own_namespace, slice, "where the extender is found"});
    add({"create", kDiscovery, "endpointslices", options.own_namespace, "", "where the extender is found"});
  }
  if (options.ssh_network_policies && options.Runs("elastic")) {
    for (const std::string& ns : NamespacesOf(Where::kManaged, options)) {
      add({"create", "networking.k8s.io", "networkpolicies", ns, "", "who reaches ssh servers"});
    }
  }
  if (options.metrics_secure) {
    add({"create", "authentication.k8s.io", "tokenreviews", "", "", "who may read metrics"});
    add({"create", "authorization.k8s.io", "subjectaccessreviews", "", "", "who may read metrics"});
  }
  return rights;
}

Result<std::vector<Right>> MissingRights(kube::Client& client, const std::vector<Right>& rights,
                                         const kube::Clock& clock, std::stop_token stop) {
  constexpr std::size_t kAtATime = 8;
  std::vector<char> has(rights.size());
  const auto ask = [&](std::size_t i) -> Status {
    const Right& right = rights[i];
    const auto [kind, subresource] = PartsOf(right.resource);
    Result<bool> is_allowed =
        kube::MayI(client, {right.verb, right.group, kind, subresource, right.ns, right.name}, stop);
    if (!is_allowed) return std::move(is_allowed).error();
    has[i] = *is_allowed;
    return {};
  };
  if (Status asked = kube::ForEachParallel(clock, rights.size(), kAtATime, ask, stop); !asked) {
    return std::move(asked).error();
  }
  std::vector<Right> missing;
  for (std::size_t i = 0; i < rights.size(); ++i) {
    if (!has[i]) missing.push_back(rights[i]);
  }
  return missing;
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The extender that an unchanged kube-scheduler asks about pods with GPUs: where a GPU has room for what a pod asks
// for, which node suits it better, and, as the one who binds pods with parts, which GPU it gets.
//
// Any replica answers filter, prioritize and preempt from its caches. Only the one that leads binds: from its decision
// on the pod counts in its account, so that the next one cannot be promised the same room. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/log.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/metrics.h"
#include "controllers/cluster/pod_placer.h"
#include "controllers/extender/awaited_victims.h"
#include "controllers/extender/refused_pods.h"

namespace grus {

struct BindCall;
struct NodesCall;
class SharingAdvisor;
class UtilizationWatch;

class Extender {
 public:
  // All must outlive it. Pods and nodes are looked up in the caches. `metrics`: not read after this has gone.
  Extender(kube::Client& client, const kube::Informer& pods, const kube::Informer& nodes, ClusterAccount& account,
           const kube::Clock& clock, const kube::Log& log, kube::Registry& metrics);
  RefusedPods& refused_pods() { return refused_; }  // For a controller of its own.
  // Before the first call. It must outlive it.
  void SetUtilization(const UtilizationWatch& utilization) { utilization_ = &utilization; }
  void SetAdvisor(SharingAdvisor& advisor) { advisor_ = &advisor; }  // Likewise.

  // Each takes a body and returns the answer's, in JSON. A body that makes no sense is an error (kInvalidArgument).
  kube::Result<std::string> Filter(std::string_view body);
  kube::Result<std::string> Prioritize(std::string_view body);
  kube::Result<std::string> Preempt(std::string_view body);
  kube::Result<std::string> Bind(std::string_view body);  // Asks the API server.
  // Not from a body, and not a scheduler: how many GiB the GPUs of a node have, and who has them, as gpushare's
  // extender tells it. Empty: of all nodes that offer GPUs in this way.
  kube::Result<std::string> Inspect(std::string_view node);

 private:
  kube::Result<std::string> Measure(const char* verb, const std::function<kube::Result<std::string>()>& answer);
  // A nominated pod is not refused at once.
  void AwaitRoom(const NodesCall& call, std::vector<std::string>& why_not);
  class Binding;
  std::shared_ptr<const kube::Pod> PodOf(const BindCall& call);  // Waits for it a little. Null: there is none.
  kube::Status BindPod(const BindCall& call);
  bool HasInventory(const std::string& node) const;
  kube::Json AnnotationsFor(const kube::Pod& pod, const std::string& node, const std::string& gpus) const;
  kube::Status TakeAndBind(const kube::Pod& pod, const BindCall& call);
  // Where the API server has a pod that may be bound although its cache does not know it. The account knows then, too.
  struct Whereabouts {
    bool is_known = false;  // False: the API server does not say.
    std::string node = {};  // Empty: it is not bound, or has gone.
  };
  Whereabouts LookUp(const kube::Pod& pod);

  kube::Client& client_;
  const kube::Informer &pods_, &nodes_;
  PodPlacer placer_;
  RefusedPods refused_;
  AwaitedVictims awaited_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  kube::Registry& metrics_;
  const UtilizationWatch* utilization_ = nullptr;          // Null: nothing is measured.
  SharingAdvisor* advisor_ = nullptr;                      // Null: nothing is predicted.
  std::mutex mutex_;                                       // Guards what follows.
  std::set<std::string> being_bound_;                      // UIDs; by calls that run.
  std::map<kube::ObjectKey, kube::TimePoint> not_before_;  // The API server has asked to wait so long.
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/fake_cluster.h"

#include <utility>

#include "clientlib/testing/cluster/garbage_collector.h"
#include "clientlib/testing/cluster/job_controller.h"
#include "clientlib/testing/cluster/kubelet.h"
#include "clientlib/testing/cluster/namespace_controller.h"
#include "clientlib/testing/cluster/node_lifecycle.h"
#include "clientlib/testing/cluster/objects.h"
#include "clientlib/testing/cluster/quota_controller.h"
#include "clientlib/testing/cluster/scheduler.h"
#include "clientlib/testing/cluster/statefulset_controller.h"

namespace kube::testing {

struct FakeCluster::Impl {
  Impl(Simulation& simulation, FakeApiServer& server, FakeClusterOptions wanted)
      : options(std::move(wanted)), context{simulation, server, options} {
    server.AddObserver([this](const ServerChange& change) {
      statefulsets.Observe(change);
      jobs.Observe(change);
      scheduler.Observe(change);
      kubelet.Observe(change);
      nodes.Observe(change);
      garbage.Observe(change);
      namespaces.Observe(change);
      quotas.Observe(change);
    });
  }

  FakeClusterOptions options;
  ClusterContext context;
  StatefulSetController statefulsets{context};
  JobController jobs{context};
  Scheduler scheduler{context};
  Kubelet kubelet{context};
  NodeLifecycle nodes{context};
  GarbageCollector garbage{context};
  NamespaceController namespaces{context};
  QuotaController quotas{context};
  int last_ip = 0;
};

FakeCluster::FakeCluster(Simulation& simulation, FakeApiServer& server, FakeClusterOptions options)
    : impl_(std::make_unique<Impl>(simulation, server, std::move(options))) {}
FakeCluster::~FakeCluster() = default;

FakeClusterOptions& FakeCluster::options() { return impl_->options; }

Status FakeCluster::AddNode(const std::string& name, int gpus, const NodeOptions& options) {
  Json node = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Node"}});
  node["metadata"]["name"] = name;
  node["metadata"]["labels"] = options.labels;
  node["metadata"]["labels"]["kubernetes.io/hostname"] = name;
  if (!options.taints.AsArray()->empty()) node["spec"]["taints"] = options.taints;

  Json allocatable = options.allocatable;
  if (gpus > 0) allocatable["nvidia.com/gpu"] = std::to_string(gpus);
  const int n = impl_->last_ip++;
  const std::string ip = "10.1." + std::to_string(n / 254 % 256) + "." + std::to_string(n % 254 + 1);
  const std::string now = impl_->context.Now();
  const auto set_status = [&](Json& object) {
    Json& status = object["status"];
    status["capacity"] = allocatable;
    status["allocatable"] = allocatable;
    status["addresses"] = Json::MakeArray({Json::MakeObject({{"type", "InternalIP"}, {"address", ip}}),
                                           Json::MakeObject({{"type", "Hostname"}, {"address", name}})});
    SetCondition(object, {"Ready", "True", "KubeletReady", "kubelet is posting ready status"}, now);
  };
  set_status(node);
  const auto created = impl_->context.server.Create("nodes", std::move(node));
  if (!created) return created.error();
  if ((*created)->At({"status", "allocatable"})) return {};
  Json object = **created;
  set_status(object);
  const auto updated = impl_->context.server.Update("nodes", std::move(object), "status");
  return updated ? Status() : Status(updated.error());
}

void FakeCluster::RemoveNode(const std::string& name) {
  const FakeApiServer::ObjectPtr node = impl_->context.server.Get("nodes", {"", name});
  if (node) impl_->context.DeleteObject("nodes", *node);
}

void FakeCluster::SetNodeReady(const std::string& name, bool is_ready) {
  impl_->kubelet.SetAlive(name, is_ready);
  impl_->nodes.SetDark(name, !is_ready);
}

void FakeCluster::SetCordoned(const std::string& name, bool is_cordoned) {
  const FakeApiServer::ObjectPtr node = impl_->context.server.Get("nodes", {"", name});
  if (!node) return;
  impl_->context.Modify("nodes", {"", name}, UidOf(*node), "", [&](Json& object) {
    if (IsTrueAt(object, {"spec", "unschedulable"}) == is_cordoned) return false;
    if (is_cordoned) {
      object["spec"]["unschedulable"] = true;
    } else {
      object["spec"].Erase("unschedulable");
    }
    return true;
  });
}

void FakeCluster::RestartScheduler(Duration downtime) { impl_->scheduler.Restart(downtime); }

}  // namespace kube::testing

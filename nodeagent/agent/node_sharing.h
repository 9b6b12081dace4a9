// SPDX-License-Identifier: Apache-2.0
// Gives parts of this node's GPUs to its pods, in the way that the node's label says (part_resources.h).
//
// It reads the label once a minute (`read_again`). When that changes, the device plugins of the old way end, and with
// them what the kubelet offers; containers that run keep what they have, and their GPUs are given to nobody else until
// they have ended. An unknown label is told, and nothing is offered. With the label it reads which NodePool has the
// node, and what of memory that allows beside a part. In the mode of claims, the scheduler gives the
// GPUs (dra/): then no device plugin runs, and in other modes none of its slices is there. The kubelet is served as
// long as a claim is prepared, in any mode, or pods with claims could not end. Time comes from `clock`.
// NodeAnnotations() and newest_parts() are thread-safe, the rest is not.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "clientlib/client/client.h"
#include "clientlib/model/core_v1.h"
#include "nodeagent/dra/gpu_claims.h"
#include "nodeagent/gpu_probe.h"
#include "nodeagent/kubelet/claim_host.h"
#include "nodeagent/kubelet/plugin_host.h"
#include "nodeagent/kubelet/pod_resources.h"
#include "nodeagent/limits/cuda_sharing.h"
#include "nodeagent/mps/mps_sharing.h"
#include "nodeagent/node_pods.h"
#include "nodeagent/sharing/given_parts.h"
#include "nodeagent/sharing/part_annotations.h"
#include "nodeagent/sharing/part_enforcers.h"
#include "nodeagent/sharing/part_plugins.h"
#include "nodeagent/sharing/pending_parts.h"

namespace grus {

struct NodeSharingOptions {
  std::string node_name = {};
  std::int64_t reserve_mib = 500;                       // Of each GPU.
  kube::Duration read_again = std::chrono::minutes(1);  // The label.
  std::string plugin_folder = kDevicePluginFolder, pod_resources_socket = kPodResourcesSocket;
  std::string plugin_registry = kPluginRegistryFolder, cdi_folder = kCdiFolder;
  // Without its reserve, and whom to tell of faults.
  MpsOptions mps = {};
  CudaOptions cuda = {};  // Without its reserve.
  // Told of a pod and why a program of it may have ended. Null: nobody is told.
  std::function<void(const NodePod& pod, const std::string& note)> on_mps_fault = {};
  std::string own_pod = {};  // UID of the agent's pod; empty: it is in none, or not known.
};

class NodeSharing {
 public:
  using NewestLook = std::function<std::shared_ptr<const NodeSample>()>;  // Null: none so far.

  // All must outlive it.
  NodeSharing(kube::Client& client, NewestLook newest, const NodePods& pods, NodeSharingOptions options,
              const kube::Clock& clock, const kube::Log& log);
  ~NodeSharing();

  void Run(const std::stop_token& stop);  // Blocks until `stop`; the plugins have ended when it returns.
  void LookOnce(const std::stop_token& stop = {});
  void AddMetrics(kube::Registry& registry) const;  // See MpsSharing and CudaSharing.
  const PagingAllowance& paging() const { return paging_; }
  AnnotationTexts NodeAnnotations() const;                 // Without keys while it is not known what they should be.
  std::shared_ptr<const GivenParts> newest_parts() const;  // Null: nothing is shared, or it is not known yet.

 private:
  struct Way;
  // nullopt: not known now.
  std::optional<SharingMode> ReadMode(const std::stop_token& stop);
  void ReadPlacement(const kube::Node& node);
  void ReadEnforcement(const kube::Node& node, SharingMode mode);
  bool ReadPaging(const kube::Node& node, const std::stop_token& stop);  // False: it is to be read again soon.
  MpsOptions WholeMpsOptions() const;
  CudaOptions WholeCudaOptions() const;
  void Follow(SharingMode mode);
  void SetUpPlugins();  // With what was read. REQUIRES: way_.
  std::vector<SharedGpu> Gpus() const;
  // Of the GPUs: who holds any by a device plugin, by UUID.
  kube::Result<std::map<std::string, std::string>> HoldersOfDevices();
  void LookAtClaims(const std::stop_token& stop);

  kube::Client& client_;
  const NewestLook newest_;
  const NodePods& pods_;
  const NodeSharingOptions options_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  PodResources holders_;
  MpsSharing mps_;
  CudaSharing cuda_;
  PartEnforcers enforcers_{{&mps_, &cuda_}};
  NodePendingParts pending_;
  PreparedClaims prepared_;
  GpuClaims claims_;
  ClaimHost claim_host_;
  std::optional<bool> has_slice_;                             // None: not known.
  kube::TimePoint clean_at_ = kube::TimePoint::min();         // Claims that are gone: not before.
  kube::TimePoint remove_slice_at_ = kube::TimePoint::min();  // Likewise.
  bool is_paging_read_ = true;                                // No less than the label.
  kube::FailureNews news_, slice_news_, pool_news_;
  std::string told_, told_of_placement_, told_of_enforcement_;      // Of the labels, what is wrong with them.
  PartPlacement placement_ = PartPlacement::kPack;                  // By the label.
  PagingAllowance paging_ = {.problem = "they were not read yet"};  // By the NodePool; read with the label.
  kube::TimePoint read_at_ = kube::TimePoint::min();                // The label: not before.

  mutable std::mutex mutex_;  // Guards what follows; Run()'s thread alone makes another way_.
  bool is_mode_known_ = false, was_alnair_ = false;
  std::unique_ptr<Way> way_;  // Null: nothing is shared.

  std::optional<kube::Thread> serving_claims_;  // Ends first: it uses all above.
};

}  // namespace grus

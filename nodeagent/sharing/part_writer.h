// SPDX-License-Identifier: Apache-2.0
// Keeps the annotations of this node's pods true, by what PodResources says that they hold.
//
// It looks every five seconds, and soon after a container has started; at most ten pods are written a second. What
// users write to these keys is overwritten. Of a pod that holds nothing they are removed: at once if it asks for
// nothing, else after half a minute, since a kubelet that has just started knows of no pod for a moment. Pods that have
// ended keep what they had.
//
// Each write has the pod's UID as its precondition. What fails is tried again, later each time; a right that is lacking
// is told once. Time comes from `clock`. Not thread-safe, but for Wake().
#pragma once

#include <map>
#include <mutex>
#include <stop_token>
#include <string>

#include "clientlib/base/backoff.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "clientlib/client/client.h"
#include "nodeagent/node_pods.h"
#include "nodeagent/sharing/given_parts.h"
#include "nodeagent/sharing/part_annotations.h"
#include "nodeagent/sharing/part_plugins.h"

namespace grus {

class PartWriter {
 public:
  // All must outlive it. `watch` is told what PodResources says; null: nobody is.
  PartWriter(kube::Client& client, const NodePods& pods, DeviceHolders& holders, const PartPlugins& plugins,
             const kube::Clock& clock, const kube::Log& log, ClaimedParts claimed = {}, PartWatch* watch = nullptr);

  void Wake();                            // There may be something to write. Thread-safe.
  void Run(const std::stop_token& stop);  // Blocks until `stop`.
  void LookOnce(const std::stop_token& stop = {});

 private:
  // The merge patch of the pod's annotations; without members: they are right.
  kube::Json Plan(const NodePod& pod, std::span<const HeldParts> parts, std::span<const SharedGpu> gpus);
  // False: nothing more is to be written now.
  bool Write(const NodePod& pod, kube::Json annotations, const std::stop_token& stop);
  // Not before `again` is it tried again.
  void Failed(const char* what, const kube::Error& error, kube::Backoff& retry, kube::TimePoint& again);
  // What the pod itself says of its parts. Warns once if a container chooses its GPUs itself.
  void AddWhatPodSays(const NodePod& pod, std::vector<HeldParts>& parts);
  void TellLack(const kube::Error& error);

  kube::Client& client_;
  const NodePods& pods_;
  DeviceHolders& holders_;
  const PartPlugins& plugins_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const ClaimedParts claimed_;
  PartWatch* const watch_;

  kube::Backoff retry_, look_retry_;
  kube::TimePoint next_look_ = kube::TimePoint::min(), next_write_ = next_look_;  // Not before.
  kube::FailureNews news_;
  bool is_lack_told_ = false;
  struct Known {
    std::string version = {};                             // Of our last write; empty: the cache has seen it.
    std::optional<kube::TimePoint> empty_since = {};      // It asks for parts, and holds none.
    kube::TimePoint not_before = kube::TimePoint::min();  // What is wrong with this pod alone.
    int failures = 0;
    bool is_override_told = false;
  };
  std::map<std::string, Known> known_;  // By UID.

  std::mutex mutex_;  // Guards is_awake_.
  kube::CondVar woken_;
  bool is_awake_ = false;
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Keeps this node's ResourceSlice true, and removes others of our driver on it.
//
// It looks once a second, and asks the kubelet every five seconds who holds GPUs otherwise; while the kubelet does not
// say, the slice stays as it is. What fails is tried again, later each time, and told in the log once a minute. Time
// comes from `clock`. Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/backoff.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "nodeagent/dra/gpu_slice.h"
#include "nodeagent/kubelet/held_devices.h"

namespace grus {

class SliceWriter {
 public:
  using Gpus = std::function<std::vector<SharedGpu>()>;  // Now; nobody has looked yet: none.

  // The node's slices of our driver.
  static kube::InformerOptions CacheOptions(const std::string& node);

  // All must outlive it. `slices`: of NodeSlice, with CacheOptions(), started.
  SliceWriter(kube::Client& client, const kube::Informer& slices, std::string node, Gpus gpus, DeviceHolders& holders,
              const kube::Clock& clock, const kube::Log& log);

  void Run(const std::stop_token& stop);  // Blocks until `stop`. The slice stays.
  void LookOnce(const std::stop_token& stop = {});

  // The node's slice is gone, by its name. For a node that gives no GPUs by claims.
  static kube::Status Remove(kube::Client& client, const std::string& node, const std::stop_token& stop);

 private:
  // What is offered; nullopt: it is not known now.
  std::optional<kube::Json> Devices(kube::TimePoint now);
  kube::Status Reconcile(const kube::Json& devices, const std::stop_token& stop);
  kube::Status Create(const kube::Json& devices, const std::stop_token& stop);
  void Failed(const kube::Error& error);

  kube::Client& client_;
  const kube::Informer& slices_;
  const std::string node_;
  const Gpus gpus_;
  DeviceHolders& holders_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::optional<std::map<std::string, std::string>> held_;                           // nullopt: never known.
  kube::TimePoint ask_at_ = kube::TimePoint::min(), next_ = kube::TimePoint::min();  // Not before.
  kube::Backoff retry_;
  kube::FailureNews news_;
};

}  // namespace grus

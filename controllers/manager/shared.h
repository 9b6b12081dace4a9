// SPDX-License-Identifier: Apache-2.0
// What the controllers of one manager share, and how they read the cluster.
#pragma once

#include "clientlib/client/client.h"
#include "clientlib/runtime/event_recorder.h"
#include "clientlib/runtime/manager.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/manager/options.h"
#include "controllers/prometheus/prometheus.h"

namespace grus {

inline kube::InformerOptions Everything(const Options& options) {
  kube::InformerOptions all;
  all.namespaces = options.namespaces;
  return all;
}

// Those of the namespaces that are not managed.
inline kube::InformerOptions Elsewhere(const Options& options) {
  kube::InformerOptions others;
  for (const std::string& name : options.namespaces) {
    others.field_selector.append(others.field_selector.empty() ? "" : ",").append("metadata.namespace!=").append(name);
  }
  return others;
}

// For kinds that the permissions of an earlier version may lack: grus works without them.
inline kube::InformerOptions Optional(kube::InformerOptions options) {
  options.is_optional = true;
  return options;
}

// What all controllers share.
struct Shared {
  const Options& options;
  kube::Client& client;
  kube::Manager& manager;
  kube::EventRecorder& events;
  const kube::Clock& clock;
  const kube::Log& log;
  kube::Informer& pods;
  kube::Informer& nodes;
  ClusterAccount& account;
  const Prometheus::Connect& to_prometheus;
  // Null: no controller that runs makes or reads them.
  kube::Informer* jobs = nullptr;
  kube::Informer* groups = nullptr;
  kube::Informer* profiles = nullptr;
  const kube::Informer* far_pods = nullptr;  // Of namespaces that are not managed.

  kube::WorkQueue& Run(kube::Reconciler& reconciler, const char* name, int threads) const {
    return manager.AddController(reconciler, {.name = name, .threads = threads}).queue();
  }
};

}  // namespace grus

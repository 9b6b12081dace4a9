// SPDX-License-Identifier: Apache-2.0
// The kubelets of all nodes: bound pods run, end as they are told to, and go when they are deleted.
//
// Pods obey the annotations that the test clusters' nodes obey (tests/cluster/README.md): grus.test/outcome: succeed
// or fail, grus.test/ready: "false"; and grus.test/run-seconds: N, after which they succeed. As there, a pod that
// ends has ended: containers are not restarted, and probes and readiness gates are not played.
#pragma once

#include <map>
#include <set>
#include <string>

#include "clientlib/testing/cluster/cluster_context.h"

namespace kube::testing {

class Kubelet {
 public:
  explicit Kubelet(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Takes notes only.

  // A dead node does nothing about its pods until it is alive again.
  void SetAlive(const std::string& node, bool is_alive);

 private:
  struct Record {
    std::string uid;
    TimePoint start_at{}, stop_at = TimePoint::max(), end_at = TimePoint::max(), ready_at{};
    std::string ip;
  };

  void Wake(const std::string& node);
  bool Reconcile(const ObjectKey& key);
  bool Stop(const ObjectKey& key, const Json& pod, Record& record);
  bool Start(const ObjectKey& key, const Json& pod, Record& record);
  bool Run(const ObjectKey& key, const Json& pod, Record& record);
  bool End(const ObjectKey& key, const Json& pod, int exit_code);
  bool WaitUntil(const ObjectKey& key, TimePoint at);  // True if it has come.

  const ClusterContext& context_;
  WorkLoop loop_;
  std::set<std::string, std::less<>> nodes_, dead_;
  std::map<ObjectKey, Record> records_;
  int last_ip_ = 0;
};

}  // namespace kube::testing

// SPDX-License-Identifier: Apache-2.0
// The kubelets of all nodes: bound pods start, run, crash and end as their annotations say, and are removed once they
// are deleted.
//
// Annotations may be set at creation or later. All containers of a pod behave alike. The nodes of the test clusters
// follow those in the first table, too (tests/cluster/README.md).
//
//   grus.test/outcome: succeed | fail   the containers end for good, whatever the pod's restartPolicy
//   grus.test/exit-code: "N"            of a failure or a crash; otherwise 1
//   grus.test/ready: "false"            the readiness probe fails
//   grus.test/waiting: "REASON: text"   the containers wait with that reason and message, and start once it is removed;
//   an
//                                       ErrImagePull is tried again, and in between it is an ImagePullBackOff
//   grus.test/crash: "N"                the containers crash as soon as they run, until they have crashed N times since
//                                       the pod began. They start again in the pod, at once or after the kubelet's
//                                       back-off; but if restartPolicy is Never, the pod fails.
//
//   grus.test/run-seconds: "N"          after that time the containers succeed
//   grus.test/stop-seconds: "N"         a deleted pod takes that long to stop, or is killed when its grace is over; it
//                                       stays as Ready as before, since a kubelet goes on with readiness probes
//
// A container with a startupProbe has started and is ready, and one with a readinessProbe is ready, after a delay of
// FakeClusterOptions::start; one without probes is now and then as late. Liveness probes never fail; readiness gates
// are not modelled. The reports and their order are those observed from Kubernetes 1.36's kubelet.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "clientlib/testing/cluster/cluster_context.h"
#include "clientlib/testing/cluster/pod_containers.h"

namespace kube::testing {

class Kubelet {
 public:
  explicit Kubelet(const ClusterContext& context);
  void Observe(const ServerChange& change);  // Only records the change.

  // A dead node ignores its pods until it is alive again.
  void SetAlive(const std::string& node, bool is_alive);

 private:
  // What a kubelet knows of a pod besides what it has reported.
  struct Record {
    std::string uid;
    TimePoint start_at{}, stop_at = TimePoint::max(), end_at = TimePoint::max(), ready_at{};
    std::string ip = {}, running_since = {};  // `running_since` is its containers'.
    bool is_killed = false;                   // Because it took too long to stop.

    Json end_state = {};  // Of containers that have ended for good; the pod's phase follows a moment later.

    int restarts = 0;         // As reported: does not count the current crash while the containers are down.
    Json last_state = {};     // Likewise; how they ended before.
    Json crashed_state = {};  // How they ended this time, while they are down.
    bool is_down = false;     // They have crashed and are not known to run again.
    bool was_tried = false;   // The last check started them, or pulled their image; else it put that off.
    TimePoint failed_at{};    // The last crash, or the last pull.
    TimePoint look_at{};      // The next check of containers that are down or wait for their image.
    RestartBackoff crash_backoff = {}, pull_backoff = {};
  };

  void Wake(const std::string& node);
  bool Reconcile(const ObjectKey& key);
  bool Stop(const ObjectKey& key, const Json& pod, Record& record);
  Json StoppedState(const Json& pod, const Record& record) const;
  bool Start(const ObjectKey& key, const Json& pod, Record& record);
  bool Pull(const ObjectKey& key, const Json& pod, Record& record);
  bool Run(const ObjectKey& key, const Json& pod, Record& record);
  bool Crash(const ObjectKey& key, const Json& pod, Record& record);
  bool Restart(const ObjectKey& key, const Json& pod, Record& record);
  void Launch(const ObjectKey& key, const Json& pod, Record& record);  // The containers run from now on.

  bool End(const ObjectKey& key, const Json& pod, Record& record, const Json& state);
  bool ReportDown(const ObjectKey& key, Record& record, const std::function<Json(const Json& container)>& state);
  bool ReportRunning(const ObjectKey& key, const Json& pod, Record& record);
  // Writes the status if `change` changes it.
  bool Report(const ObjectKey& key, const Record& record, const std::function<void(Json& pod)>& change);
  void PutOnline(Json& pod, Record& record, bool has_sandbox);  // Sets addresses and the state before the start.
  bool WaitUntil(const ObjectKey& key, TimePoint at);           // True if `at` has come.

  const ClusterContext& context_;
  WorkLoop loop_;
  std::set<std::string, std::less<>> nodes_, dead_;
  std::map<ObjectKey, Record> records_;
  int last_ip_ = 0;
};

}  // namespace kube::testing

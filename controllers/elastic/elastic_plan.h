// SPDX-License-Identifier: Apache-2.0
// What should be: a pure function of the view. No I/O, no clock.
//
// The reconciler carries out a plan in a fixed order (elastic_reconciler.h). If it stops after any part, the next pass
// starts from what the cluster then says and comes to the same end.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controllers/elastic/job_reason.h"
#include "controllers/elastic/worker_plan.h"
#include "controllers/frame/planned_event.h"

namespace grus {

struct Plan {
  bool delete_job = false;  // The job's time to live after its end is over.

  bool check_secret = false;            // Make the Secret again if it is gone.
  std::optional<WorkersState> workers;  // Of which the Secret is kept; nullopt: none will ever run again.
  int early = 0;                        // See WorkerPlan.
  int missing = 0;                      // Workers to make.
  std::vector<std::string> nodes;       // Those that have room for them; may be fewer.
  WorkerSet drop;                       // Workers to delete.
  // The Service and the ConfigMap; nullopt: none. Before the launcher's start nobody needs the Service, and the cluster
  // would write its endpoints once for each worker.
  std::optional<HostList> hosts;
  bool wants_launcher = false;
  bool restart_launcher = false;  // Delete the Job that is there.

  std::vector<std::string> bury;                     // Pods whose node is gone, to end by force.
  std::vector<const LauncherPod*> push_hosts_to;     // Launcher pods that should read a newer host list.
  std::string deadline;                              // Of the job's preemption; empty: it goes on.
  std::vector<const LauncherPod*> tell_deadline_to;  // Launcher pods whose annotation says something else.

  api::ElasticHorovodJobStatus status;
  std::vector<PlannedEvent> events;
  std::optional<kube::Duration> look_again;
};

// False for another controller's job, and for one that is being deleted: the garbage collector deletes its children.
bool IsOurs(const api::ElasticHorovodJob& job);
// REQUIRES: IsOurs(*view.job).
Plan PlanElasticJob(const View& view);

// The status of a job that cannot be carried out as it is, because the API server refused a child.
api::ElasticHorovodJobStatus RefusedStatus(const View& view, Reason reason, const std::string& message);

}  // namespace grus

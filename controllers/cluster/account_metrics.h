// SPDX-License-Identifier: Apache-2.0
// What the account decides, for Prometheus: how long jobs and gangs wait, who is told to yield, which jobs are resized,
// how long a decision takes, and where GPUs are free. Labels are queues and pools, never jobs or namespaces.
//
// Not thread-safe: under the lock of the account. Without a registry it counts nothing.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/runtime/metrics.h"
#include "controllers/policy/cluster_queues.h"
#include "controllers/policy/gang_planner.h"

namespace grus {

class AccountMetrics {
 public:
  // `registry` may be null.
  AccountMetrics(kube::Registry* registry, ClusterQueues& queues, const kube::Clock& clock);

  // A gang waits from its first demand until it is placed or asks no more. Only starts count: not the members beyond
  // its minimum, nor what is left of a start.
  void NoteDemand(const GangDemand& demand);
  void NoteNoDemand(const std::string& gang) { waiting_.erase(gang); }
  void NotePlaced(const std::string& gang);

  // Of owners whose notice may have changed. A notice counts if the owner had none, or is to keep less than before.
  void NoteNotices(const std::vector<std::string>& owners);
  void NoteResize(const std::string& owner, int from, int to);
  void NoteGone(const std::string& owner);

  enum class Decision { kStarts, kSizes };
  void NoteDecision(Decision decision, kube::TimePoint began);

  kube::Registry::Samples FreeGpus() const;

 private:
  std::string QueueOf(const std::string& owner) const;

  kube::Registry* const registry_;
  ClusterQueues& queues_;
  const kube::Clock& clock_;
  kube::Histogram *starts_ = nullptr, *sizes_ = nullptr;  // Of the decisions.
  std::map<std::string, kube::TimePoint> waiting_;        // Gangs by key: since when.
  std::map<std::string, int> told_;                       // Owners with a notice: the workers that stay.
};

}  // namespace grus

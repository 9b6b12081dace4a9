// SPDX-License-Identifier: Apache-2.0
// Writes what a plan wants of the members of a gang: nominations, lifted gates, ends. Each write is preconditioned on
// the pod's UID, and noted with the tracker. Thread-safe.
#pragma once

#include <atomic>
#include <string>

#include "clientlib/base/log.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "controllers/cluster/cluster_account.h"
#include "controllers/gang/gang_plan.h"

namespace grus {

class MemberWriter {
 public:
  MemberWriter(kube::Client& client, const ClusterAccount& account, kube::WriteTracker& writes,
               const kube::Clock& clock, const kube::Log& log)
      : client_(client), account_(account), writes_(writes), clock_(clock), log_(log) {}

  // Nominates or lifts.
  kube::Status Start(const GangView& view, const GangPlan& plan, std::stop_token stop);
  // Deletes. A member of a Job is taken out of its Job's count first: a deletion counts as a failure there, and the
  // backoffLimit is the user's.
  kube::Status End(const GangView& view, const GangPlan& plan, std::stop_token stop);
  // What answers to nominations say of this cluster; true at first.
  bool keeps_annotations() const { return keeps_annotations_; }

 private:
  kube::Status EndOne(const GangView& view, const Member& member, std::stop_token stop);
  // False: it is gone, or has changed, and is to be looked at again.
  kube::Result<bool> Uncount(const GangView& view, const Member& member, std::stop_token stop);
  kube::Status Nominate(const GangView& view, const Nomination& nomination, std::stop_token stop);
  // `node`: where it must go; empty: where the scheduler likes.
  kube::Status Lift(const GangView& view, const Member& member, const std::string& node, std::stop_token stop);
  kube::Result<std::shared_ptr<kube::Object>> PatchPod(const GangView& view, const Member& member,
                                                       const kube::Json& patch, const std::string& subresource,
                                                       std::stop_token stop);

  kube::Client& client_;
  const ClusterAccount& account_;
  kube::WriteTracker& writes_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::atomic<bool> keeps_annotations_{true};
};

}  // namespace grus

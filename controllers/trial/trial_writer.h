// SPDX-License-Identifier: Apache-2.0
// Writes what a plan wants of trials. A child that is there is written with its UID as a precondition, and each write
// of a child is noted with the tracker. Thread-safe.
#pragma once

#include "controllers/frame/child_writer.h"
#include "controllers/trial/trial_plan.h"
#include "controllers/trial/trial_runs.h"

namespace grus {

class TrialWriter {
 public:
  // `jobs`: the ElasticHorovodJobs.
  TrialWriter(kube::Client& client, const kube::Informer& jobs, TrialRuns& runs, kube::WriteTracker& writes)
      : client_(client), jobs_(jobs), runs_(runs), writes_(writes) {}

  // Writes the knee into the job that it is for, if the plan says so.
  kube::Status ApplyKnee(const TrialView& view, const TrialPlan& plan, std::stop_token stop);
  // Ends what has ended, makes what running trials lack, then starts new ones. REQUIRES: the status says so.
  kube::Status WriteChildren(const TrialView& view, const TrialPlan& plan, std::stop_token stop);

 private:
  kube::Status End(const TrialView& view, const TrialPlan& plan, ChildWriter& writer);
  kube::Status Start(const TrialView& view, const TrialStart& start, ChildWriter& writer);

  kube::Client& client_;
  const kube::Informer& jobs_;
  TrialRuns& runs_;
  kube::WriteTracker& writes_;
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// How a trial is created, read and stopped in the cluster. There are two kinds of trials, jobs and pods; the reconciler
// treats them alike.
//
// Reads caches only, writes nothing. Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/cache/informer.h"
#include "controllers/trial/trial_children.h"

namespace grus {

struct TrialCaches {
  kube::Informer& trial_jobs;
  kube::Informer& jobs;  // All ElasticHorovodJobs.
  kube::Informer& pods;
  kube::Informer& nodes;
  kube::Informer* groups = nullptr;  // All PodGroups; null: nobody lifts gates, so trials that are pods get none.
};

// The TrialJob that controls it; nullopt: it is no child of one. Of its own namespace, whatever its author claims.
std::optional<kube::ObjectKey> TrialJobOf(const kube::ObjectMeta& metadata);

struct TrialPart {
  const kube::Kind& kind;
  kube::Json object;
};

class TrialObjects {
 public:
  virtual ~TrialObjects() = default;

  const kube::Kind& kind() const { return children_.kind(); }
  // Of all trials that belong to `owner`.
  std::vector<std::string> NamesOf(const api::TrialJob& owner) const;
  using Pods = std::vector<std::shared_ptr<const kube::Pod>>;
  // Sets `run.child` and `run.pods`. `live`: pods to read instead of the cache's, others included; null: read the
  // cache.
  virtual void Read(const api::TrialJob& owner, const std::string& trial, const Pods* live, TrialRun& run) const = 0;
  // A label selector that matches the pods of a trial, and possibly others.
  virtual std::string PodSelector(const api::TrialJob& owner, const std::string& trial) const = 0;

  virtual kube::Json Make(const api::TrialJob& job, const Workload& workload, const TrialStart& trial) const = 0;
  // What a trial consists of besides its child, to be created after it, in this order. `uid`: of the child, which owns
  // it.
  virtual std::vector<TrialPart> MakeRest(const api::TrialJob& job, const Workload& workload, const TrialStart& trial,
                                          const std::string& uid) const = 0;
  // The PodGroup of a trial whose child lacks it.
  virtual std::optional<kube::Json> MakeGroup(const kube::ObjectKey& trial) const = 0;
  // A merge patch after which the child stays, but holds no resources; its peers need the same.
  virtual kube::Json Suspension() const = 0;

 protected:
  explicit TrialObjects(kube::Informer& children);

 private:
  kube::Informer& children_;
  const kube::Store::IndexId by_owner_;
};

// Both add indexes. REQUIRES: the informers are not started yet.
// Trials that are ElasticHorovodJobs.
std::unique_ptr<const TrialObjects> MakeJobTrials(const TrialCaches& caches);
// Trials that are pods, each with a PodGroup of the same name, which is deleted with it. The pod is created first, so
// that it can own the others and the group; they stay gated until the group exists, which is made last.
std::unique_ptr<const TrialObjects> MakePodTrials(const TrialCaches& caches);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// How a trial is created, read and stopped in the cluster. There are two kinds of trials, jobs and pods; the reconciler
// treats them alike.
//
// Reads caches only, writes nothing. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clientlib/cache/informer.h"
#include "controllers/trial/trial_children.h"

namespace grus {

class TrialObjects {
 public:
  virtual ~TrialObjects() = default;

  virtual const kube::Kind& kind() const = 0;
  // Of all that belong to `owner`.
  virtual std::vector<std::string> NamesOf(const api::TrialJob& owner) const = 0;
  using Pods = std::vector<std::shared_ptr<const kube::Pod>>;
  // Sets child and pods. `live`: pods that include those of the trial; null: take those of the cache.
  virtual void Read(const api::TrialJob& owner, const std::string& trial, const Pods* live, TrialRun& run) const = 0;
  // A label selector that matches the pods of a trial, and possibly others.
  virtual std::string PodSelector(const api::TrialJob& owner, const std::string& trial) const = 0;
  // Whether an object of that name is a trial of any TrialJob.
  virtual bool IsTrial(const kube::ObjectKey& key) const = 0;

  virtual kube::Json Make(const api::TrialJob& job, const Workload& workload, const TrialStart& trial) const = 0;
  // The PodGroup of a trial whose child lacks it.
  virtual std::optional<kube::Json> MakeGroup(const kube::ObjectKey& trial) const = 0;
  // A merge patch after which it stays, and holds nothing.
  virtual kube::Json Suspension() const = 0;
};

// Trials that are ElasticHorovodJobs.
class JobTrials final : public TrialObjects {
 public:
  // Adds indexes. REQUIRES: the informers are not started yet.
  JobTrials(kube::Informer& jobs, kube::Informer& pods, kube::Informer& nodes);

  const kube::Kind& kind() const override;
  std::vector<std::string> NamesOf(const api::TrialJob& owner) const override;
  void Read(const api::TrialJob& owner, const std::string& trial, const Pods* live, TrialRun& run) const override;
  std::string PodSelector(const api::TrialJob& owner, const std::string& trial) const override;
  bool IsTrial(const kube::ObjectKey& key) const override;
  kube::Json Make(const api::TrialJob& job, const Workload& workload, const TrialStart& trial) const override;
  std::optional<kube::Json> MakeGroup(const kube::ObjectKey&) const override { return std::nullopt; }  // The job's own.
  kube::Json Suspension() const override;

 private:
  kube::Informer& jobs_;
  kube::Informer& pods_;
  kube::Informer& nodes_;
  const kube::Store::IndexId by_owner_, pods_by_job_;
};

// Trials that are pods, each with a PodGroup of the same name, which is deleted with it. The pod is created first, so
// that it can own the group; it stays gated until the group exists.
class PodTrials final : public TrialObjects {
 public:
  // Adds indexes. REQUIRES: the informers are not started yet. `groups` null: nobody lifts gates, so pods get none.
  PodTrials(kube::Informer& pods, kube::Informer& nodes, kube::Informer* groups);

  const kube::Kind& kind() const override;
  std::vector<std::string> NamesOf(const api::TrialJob& owner) const override;
  void Read(const api::TrialJob& owner, const std::string& trial, const Pods* live, TrialRun& run) const override;
  std::string PodSelector(const api::TrialJob& owner, const std::string& trial) const override;
  bool IsTrial(const kube::ObjectKey& key) const override;
  kube::Json Make(const api::TrialJob& job, const Workload& workload, const TrialStart& trial) const override;
  std::optional<kube::Json> MakeGroup(const kube::ObjectKey& trial) const override;
  kube::Json Suspension() const override;

 private:
  kube::Informer& pods_;
  kube::Informer& nodes_;
  kube::Informer* const groups_;
  const kube::Store::IndexId by_owner_;
};

}  // namespace grus

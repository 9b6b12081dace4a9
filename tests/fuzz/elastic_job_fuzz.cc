// SPDX-License-Identifier: Apache-2.0
// An ElasticHorovodJob as a user wrote it: its plan, its status and its child objects. Rules: what the API
// server's schema lets pass makes no trouble; child objects are JSON; the same job gives the same children.
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_plan.h"
#include "controllers/policy/cluster_objects.h"
#include "tests/fuzz/check.h"

namespace {

using api::ElasticHorovodJob;
using kube::Json;

// What the schema's limits refuse (crds/types/elastic_horovod_job.cc) never comes here.
bool PassesSchema(const ElasticHorovodJob& job) {
  const auto is_within = [](std::int64_t value, std::int64_t most) { return value >= 0 && value <= most; };
  const api::WorkersSpec& workers = job.spec.workers;
  const api::RunPolicy& policy = job.spec.run_policy;
  const api::ElasticPolicy& elastic = job.spec.elastic;
  return is_within(workers.min_replicas.value_or(0), 10000) && is_within(workers.max_replicas.value_or(0), 10000) &&
         is_within(workers.target_replicas.value_or(0), 10000) && is_within(workers.gpus_per_worker, 64) &&
         policy.backoff_limit >= 0 && policy.active_deadline_seconds.value_or(1) >= 1 &&
         policy.ttl_seconds_after_finished.value_or(0) >= 0 && elastic.unschedulable_grace_seconds >= 0 &&
         elastic.cooldown_seconds >= 0 && elastic.shrink_grace_seconds >= 0;
}

void RequireJson(const Json& object) {
  const kube::Result<Json> again = kube::ParseJson(kube::ToText(object), {.max_depth = 500});
  fuzz::Require(again.ok(), "a child object is JSON");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kube::Result<std::shared_ptr<ElasticHorovodJob>> job = kube::Decode<ElasticHorovodJob>(fuzz::Text(data, size));
  if (!job || !PassesSchema(**job)) return 0;
  // The API server gives each object a UID, and takes none without a name.
  kube::ObjectMeta& metadata = (*job)->metadata;
  metadata.ns = "team-a";
  if (metadata.uid.empty()) metadata.uid = "0b5e";
  if (metadata.name.empty()) metadata.name = "bert";

  const auto worker = [&] { return grus::MakeWorker(**job, 1, grus::Gang::kGated); };
  RequireJson(worker());
  RequireJson(grus::MakeLauncher(**job));
  fuzz::Require(worker() == worker(), "workers are made the same");
  fuzz::Require(grus::ShapeOf(grus::WorkerPod(**job)) == grus::ShapeOf(grus::WorkerPod(**job)),
                "a worker has one shape");

  grus::View view;
  view.job = *job;
  view.now = kube::Time{kube::WallTime(std::chrono::seconds(1767323045))};
  const grus::Plan first = grus::PlanElasticJob(view);
  view.workers = {.granted = 2, .gang = grus::Gang::kGated};
  view.launcher = grus::LauncherState::kActive;
  const grus::Plan later = grus::PlanElasticJob(view);
  for (const grus::Plan* plan : {&first, &later}) {
    fuzz::Require(!plan->look_again || *plan->look_again > kube::Duration::zero(), "a later look lies in the future");
  }
  return 0;
}

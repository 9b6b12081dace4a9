// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_holders.h"

#include <algorithm>

#include "controllers/cluster/priorities.h"
#include "controllers/elastic/elastic_plan.h"
#include "controllers/elastic/elastic_status.h"
#include "controllers/policy/job_class.h"
#include "controllers/policy/worker_devices.h"
#include "controllers/policy/workload_fingerprint.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;

// The PriorityClass of the workers, as the job says it.
std::string ClassNameOf(const api::ElasticHorovodJobSpec& spec) {
  if (!spec.priority_class_name.empty()) return spec.priority_class_name;
  const kube::Json* name = spec.workers.pod_template.At({"spec", "priorityClassName"});
  return name && name->AsString() ? *name->AsString() : std::string();
}

// Since when a job with workers has run: its oldest worker. Without workers in the view: no earlier than its last
// change of size, so that it does not yield too early.
std::int64_t RunningSince(const View& view) {
  const api::ElasticHorovodJobStatus& status = view.job->status;
  std::optional<kube::Time> since;
  for (const Worker& worker : view.pods) {
    if (worker.is_on_node() && worker.bound_since) since = std::min(since.value_or(view.now), *worker.bound_since);
  }
  if (!since && status.last_scale) since = status.last_scale->time;
  if (!since) since = status.start_time.value_or(view.now);
  return UnixSeconds(*since);
}

}  // namespace

void JobHolders::Put(const View& view) { Put(view, ClassNameOf(view.job->spec), nullptr); }

void JobHolders::Put(const View& view, std::string_view class_name, const ShapePtr& worker) {
  const ElasticHorovodJob& job = *view.job;
  const std::string owner = job.metadata.Key().ToString();
  const bool has_ended = HasEnded(job.status);
  if (has_ended && !view.has_workers()) return account_.RemoveHolder(owner);
  const Sizes sizes = SizesOf(job.spec);
  Holder holder;
  holder.queue_name = job.spec.queue_name;
  holder.job_class = JobClassOf(job.spec.workload_class);
  holder.priority = PriorityOf(priority_classes_, class_name).value_or(0);
  holder.comes_back = !has_ended;
  holder.workers = std::max(0, view.granted() - view.gated_by_others());
  holder.worker_milli = DevicesOf(job.spec.workers).milli;
  holder.min_workers = sizes.NeededToRun();
  const bool grows = !has_ended && !job.spec.run_policy.suspend && job.spec.elastic.scale_up && view.has_workers();
  holder.wanted_workers = grows ? Admitted(view, sizes).wanted : 0;
  holder.running_since = holder.workers > 0 ? RunningSince(view) : 0;
  const kube::Duration cooldown = CooldownLeft(view);
  if (cooldown > kube::Duration::zero()) holder.grows_from = UnixSeconds(kube::Time{view.now.value + cooldown});
  const api::JobUsage usage = job.status.usage.value_or(api::JobUsage());
  holder.attained_gpu_seconds = static_cast<double>(usage.gpu_seconds);
  holder.resizes = usage.resizes;
  if (!has_ended && view.measured) AddCurve(view, sizes, worker, holder);
  account_.PutHolder(owner, holder);
}

void JobHolders::AddCurve(const View& view, const Sizes& sizes, const ShapePtr& worker, Holder& holder) {
  const ElasticHorovodJob& job = *view.job;
  const int gpus = DevicesOf(job.spec.workers).count;
  const bool is_elastic = job.spec.elastic.scale_up && !job.spec.workers.target_replicas && sizes.min < sizes.max;
  if (!is_elastic || gpus <= 0 || job.spec.run_policy.suspend || WaitsForOthers(view, sizes)) return;
  const SpeedTables::Table table =
      speed_tables_.Of(*view.measured, GpuTypeOf(job), gpus, sizes.max, std::max(gpus, account_.MostDevicesOnANode()));
  if (table->empty()) return;
  holder.curve = table;
  if (worker && !view.has_workers()) holder.pool = account_.OnlyPoolFor(*worker);
  holder.wanted_workers = Admitted(view, sizes).wanted;
  holder.queued_since = UnixSeconds(job.metadata.creation_timestamp.value_or(view.now));
}

void JobHolders::PutAll(const kube::Informer& jobs) {
  for (const auto& job : jobs.List<ElasticHorovodJob>()) {
    if (!IsOurs(*job)) continue;
    View view;
    view.job = job;
    view.workers.granted = job->status.replicas.granted;
    Put(view);
  }
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_news.h"

#include <tuple>
#include <utility>

#include "clientlib/model/batch_v1.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_view.h"
#include "controllers/policy/pushed_texts.h"
#include "crds/types/pod_group.h"

namespace grus {

using kube::KindOf;

News NewsOfJob(const api::ElasticHorovodJob* before, const api::ElasticHorovodJob* after) {
  if (before == nullptr || after == nullptr) return News::kNow;
  kube::ObjectMeta meta = before->metadata;
  meta.resource_version = after->metadata.resource_version;
  if (DifferOnlyInPush(meta.annotations, after->metadata.annotations)) meta.annotations = after->metadata.annotations;
  if (!(meta == after->metadata)) return News::kNow;  // A change of the spec has another generation.
  api::ElasticHorovodJobStatus status = before->status;
  status.progress = after->status.progress;
  return status == after->status ? News::kNone : News::kNow;
}

News NewsOfJobPod(const kube::Pod* before, const kube::Pod* after) {
  if (before == nullptr) return News::kSoon;
  if (after == nullptr) return News::kNow;
  const auto look = [](const kube::Pod& pod) {
    Worker w = ReadWorker(pod, 0, true);
    return std::tuple(w.uid, w.is_ready, w.is_ending, w.unschedulable_since, w.foreign_gate, w.trouble);
  };
  if (look(*before) != look(*after)) return News::kNow;
  const auto what_makes_it_ours = [](const kube::ObjectMeta& pod) {
    return std::tuple(pod.Label(kJobNameLabel), pod.Label(kRoleLabel), pod.Label(kManagedByLabel),
                      pod.owner_references);
  };
  if (what_makes_it_ours(before->metadata) != what_makes_it_ours(after->metadata)) return News::kNow;
  if (after->metadata.labels.Get(kRoleLabel) == "launcher" &&
      (before->status.phase != after->status.phase ||
       before->metadata.Annotation(kHostsAnnotation) != after->metadata.Annotation(kHostsAnnotation) ||
       ReadLauncherPod(*before, true).trouble != ReadLauncherPod(*after, true).trouble)) {
    return News::kNow;
  }
  const auto with_scheduler = [](const kube::Pod& pod) {
    return std::pair(pod.spec.scheduling_gates.empty(), pod.spec.node_name.view());
  };
  return with_scheduler(*before) == with_scheduler(*after) ? News::kNone : News::kSoon;
}

bool LooksSameToPlan(const kube::Kind& kind, const kube::Object& before, const kube::Object& after) {
  if (before.metadata.uid != after.metadata.uid || before.metadata.generation != after.metadata.generation ||
      before.metadata.is_being_deleted() != after.metadata.is_being_deleted() ||
      before.metadata.labels != after.metadata.labels || before.metadata.annotations != after.metadata.annotations ||
      before.metadata.owner_references != after.metadata.owner_references) {
    return false;
  }
  if (&kind == &KindOf<kube::Job>()) {
    const auto end = [](const kube::Object& object) {
      const kube::JobStatus& status = static_cast<const kube::Job&>(object).status;
      return std::pair(status.is_complete(), status.is_failed());
    };
    return end(before) == end(after);
  }
  if (&kind == &KindOf<api::PodGroup>()) return true;
  return before.metadata.resource_version == after.metadata.resource_version;  // Service, ConfigMap: any change.
}

}  // namespace grus

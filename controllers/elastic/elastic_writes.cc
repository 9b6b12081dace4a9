// SPDX-License-Identifier: Apache-2.0
// The writing half of ElasticReconciler: what a plan does to the children.
#include <algorithm>

#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_reconciler.h"
#include "controllers/elastic/elastic_status.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::ErrorCode;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;
using kube::Result;
using kube::Status;

bool HasLabels(const kube::ObjectMeta& metadata, const Json& wanted) {
  const Json* labels = wanted.At({"metadata", "labels"});
  return std::all_of(labels->AsObject()->begin(), labels->AsObject()->end(), [&](const Json::Member& label) {
    return metadata.labels.Get(label.first) == *label.second.AsString();
  });
}

// Labels change without a new generation.
bool HasLabels(const kube::ObjectMeta& metadata, const ElasticHorovodJob& job, std::string_view role) {
  return metadata.labels.Get(kManagedByLabel) == kManagedBy &&
         metadata.labels.Get(kJobNameLabel) == job.metadata.name && metadata.labels.Get(kRoleLabel) == role;
}

// The phases that a job reaches only with all of its children.
bool HasStarted(const ElasticHorovodJob& job) {
  return job.status.phase == kPhaseStarting || job.status.phase == kPhaseRunning;
}

std::string OldSecretName(const ElasticHorovodJob& job) {
  return job.metadata.name + "-ssh-" + std::string(job.metadata.uid);
}

bool SameSize(const WorkersState& a, const WorkersState& b) {
  return a.replicas == b.replicas && a.granted == b.granted && a.is_gated == b.is_gated && a.gang == b.gang;
}

}  // namespace

Status ElasticReconciler::Execute(const View& view, const Plan& plan, const Children& children, ChildWriter& writer,
                                  std::optional<kube::Duration>& deferred, std::stop_token stop) {
  if (Status done = WriteSecret(view, plan, children, writer); !done) return done;
  if (Status done = WriteGroup(view, plan, children, writer); !done) return done;
  if (Status done = WriteWorkers(view, plan, children, writer); !done) return done;
  if (Status done = WritePods(view, plan, writer, stop); !done) return done;
  // Before the launcher's part: what a worker's readiness means should be read soon, and it depends on no more. But
  // what was refused may be refused again: said too early, each pass would take back what the one before said.
  const bool is_stalled = kube::IsConditionTrue(view.job->status.conditions, "Stalled");
  if (!is_stalled) {
    if (Status done = WriteStatus(view, plan.status, deferred, stop); !done) return done;
    NoteTry(view, plan);
  }
  if (Status done = WriteService(view, plan, children, writer); !done) return done;
  if (Status done = WriteHosts(view, plan, children, writer); !done) return done;
  if (Status done = WriteLauncher(view, plan, children, writer, stop); !done) return done;
  SetVerified(*view.job, children);
  if (!is_stalled) return {};
  Status said = WriteStatus(view, plan.status, deferred, stop);
  if (said) NoteTry(view, plan);
  return said;
}

// The Secret is made before the StatefulSet and deleted before it, so that where that stands there was one.
Status ElasticReconciler::WriteSecret(const View& view, const Plan& plan, const Children& children,
                                      ChildWriter& writer) {
  const ElasticHorovodJob& job = *view.job;
  if (!plan.workers) {
    if (!children.workers || children.workers->metadata.is_being_deleted()) return {};
    const ObjectKey secret{job.metadata.ns, SecretName(job)};
    Status gone = client_.Delete(KindOf<kube::Secret>(), secret);
    return gone ? Status() : std::move(gone).error().with("delete Secret " + secret.ToString());
  }
  const bool is_old = children.workers && children.workers->metadata.labels.Get(kFilesLabel).empty();
  if (children.workers && !is_old && !plan.check_secret) return {};
  const auto read = [&](const std::string& name) {
    auto live = client_.Get<kube::Secret>({job.metadata.ns, name});
    if (!live) live = std::move(live).error().with("look for Secret " + job.metadata.ns + "/" + name);
    return live;
  };
  std::optional<SshKey> key;
  if (children.workers) {
    const auto live = read(SecretName(job));
    if (live) return {};
    if (live.error().code() != ErrorCode::kNotFound) return live.error();
    // Pods may run whose key is that of the Secret which an older grus made.
    const auto old = is_old ? read(OldSecretName(job)) : live;
    if (!old && old.error().code() != ErrorCode::kNotFound) return old.error();
    if (old) key = KeyIn(**old);
  }
  if (!key) {
    Result<SshKey> made = MakeSshKey(job.metadata.Key().ToString());
    if (!made) return std::move(made).error();
    key = *std::move(made);
  }
  return writer.Create(KindOf<kube::Secret>(), MakeSecret(job, *key), HasStarted(job));
}

Status ElasticReconciler::WriteService(const View& view, const Plan& plan, const Children& children,
                                       ChildWriter& writer) {
  const ElasticHorovodJob& job = *view.job;
  if (!plan.hosts) {
    if (!children.service || children.service->metadata.is_being_deleted()) return {};
    return writer.Delete(KindOf<kube::Service>(), *children.service);
  }
  if (!children.service) {
    const bool was_there = HasStarted(job) || !VerifiedOf(job).service_version.empty();
    return writer.Create(KindOf<kube::Service>(), MakeService(job), was_there);
  }
  if (VerifiedOf(job).service_version == children.service->metadata.resource_version) return {};
  const Json wanted = MakeService(job);
  const Json* selector = wanted.At({"spec", "selector"});
  const bool is_right = HasLabels(children.service->metadata, wanted) &&
                        children.service->spec.selector.size() == selector->AsObject()->size() &&
                        kube::IsCovered(*wanted.Find("spec"), children.service->spec_json);
  if (is_right) return {};
  return writer.Restore(KindOf<kube::Service>(), std::string(children.service->metadata.uid), wanted);
}

Status ElasticReconciler::WriteGroup(const View& view, const Plan& plan, const Children& children,
                                     ChildWriter& writer) {
  const ElasticHorovodJob& job = *view.job;
  const kube::Kind& kind = KindOf<api::PodGroup>();
  const bool is_wanted = plan.workers && plan.workers->replicas > 0 && plan.workers->gang != Gang::kNone;
  if (!is_wanted) {
    if (!children.group || children.group->metadata.is_being_deleted()) return {};
    return writer.Delete(kind, *children.group);
  }
  const Json wanted = MakeGroup(job);
  if (!children.group) return writer.Create(kind, wanted, HasStarted(job));
  if (children.group->metadata.is_being_deleted()) return {};  // Made anew when it is gone.
  const bool is_right = HasLabels(children.group->metadata, job, "worker") &&
                        children.group->spec.min_member == SizesOf(job.spec).NeededToRun();
  return is_right ? Status() : writer.Restore(kind, std::string(children.group->metadata.uid), wanted);
}

Result<bool> ElasticReconciler::RestoreHiddenWorkers(const ElasticHorovodJob& job, ChildWriter& writer,
                                                     std::stop_token stop) {
  const kube::Kind& kind = KindOf<kube::StatefulSet>();
  const auto live = client_.Get<kube::StatefulSet>({job.metadata.ns, WorkersName(job)}, stop);
  if (!live) {
    if (live.error().code() == ErrorCode::kNotFound) return false;
    return kube::Error(live.error()).with("look for the workers of " + job.metadata.Key().ToString());
  }
  const kube::ObjectMeta& metadata = (*live)->metadata;
  const kube::OwnerReference* owner = metadata.Controller();
  if (owner == nullptr || owner->uid != job.metadata.uid || metadata.is_being_deleted()) return false;
  Status restored = writer.Restore(kind, metadata.uid, MakeWorkers(job, ReadWorkersState(**live)));
  if (!restored) return std::move(restored).error();
  return true;
}

Status ElasticReconciler::WriteWorkers(const View& view, const Plan& plan, const Children& children,
                                       ChildWriter& writer) {
  const int writes_before = writer.writes();
  Status written = WriteStatefulSet(view, plan, children, writer);
  const bool had_workers = view.workers && view.workers->replicas > 0;
  if (written && writer.writes() > writes_before && !had_workers && plan.workers && plan.workers->replicas > 0) {
    started_version_.With(view.job->metadata, [&](std::string& version) { version = writer.last_version(); });
  }
  return written;
}

Status ElasticReconciler::WriteStatefulSet(const View& view, const Plan& plan, const Children& children,
                                           ChildWriter& writer) {
  const ElasticHorovodJob& job = *view.job;
  const kube::Kind& kind = KindOf<kube::StatefulSet>();
  if (!plan.workers) {
    if (!children.workers || children.workers->metadata.is_being_deleted()) return {};
    return writer.Delete(kind, *children.workers);
  }
  if (!children.workers) {
    const bool was_there = HasStarted(job) || VerifiedOf(job).workers_generation > 0;
    return writer.Create(kind, MakeWorkers(job, *plan.workers), was_there);
  }
  const kube::StatefulSet& set = *children.workers;
  if (set.metadata.is_being_deleted()) return {};  // Made anew when it is gone.

  const bool is_same_size = SameSize(*view.workers, *plan.workers);
  const Verified verified = VerifiedOf(job);
  const bool is_verified =
      verified.workers_generation == set.metadata.generation && HasLabels(set.metadata, job, "worker");
  if (is_same_size && is_verified) return {};
  const Json wanted = MakeWorkers(job, *plan.workers);
  const Json* spec = wanted.Find("spec");
  // Compared with the size as it is: a new size alone is the smaller write.
  Json as_is = *spec;
  as_is["replicas"] = view.workers->replicas;
  const bool is_other_template =
      view.workers->is_gated != plan.workers->is_gated || view.workers->gang != plan.workers->gang;
  if (is_other_template) {
    as_is["template"] = *MakeWorkers(job, *view.workers).At({"spec", "template"});
  }
  // What the spec no longer has is covered as well, so the hash says that the template changed.
  const bool is_same_template = set.metadata.annotations.Get(kTemplateAnnotation) ==
                                *wanted.At({"metadata", "annotations", kTemplateAnnotation})->AsString();
  if (!HasLabels(set.metadata, wanted) || !is_same_template || !kube::IsCovered(as_is, set.spec_json)) {
    return writer.Restore(kind, std::string(set.metadata.uid), wanted);
  }
  if (is_same_size) return {};
  kube::JsonPatch patch;
  patch.Test({"metadata", "uid"}, std::string(set.metadata.uid));
  patch.Test({"spec", "replicas"}, view.workers->replicas);
  patch.Add({"spec", "replicas"}, plan.workers->replicas);
  if (set.metadata.annotations.empty()) patch.Add({"metadata", "annotations"}, Json::MakeObject());
  patch.Add({"metadata", "annotations", kGrantedAnnotation}, std::to_string(plan.workers->granted));
  if (is_other_template) patch.Add({"spec", "template"}, *spec->Find("template"));
  return writer.Patch(kind, set.metadata.name, patch);
}

Status ElasticReconciler::Bury(const ObjectKey& key, const View& view, ChildWriter& writer, std::stop_token stop) {
  const auto pod = caches_.pods.Get<kube::Pod>(key);
  if (!pod) return {};
  // The cache may be older than the node: ask before a pod that might run is deleted by force.
  const auto node = client_.Get(KindOf<kube::Node>(), {"", std::string(pod->spec.node_name)}, stop);
  if (node) return {};
  if (node.error().code() != ErrorCode::kNotFound) {
    return kube::Error(node.error()).with("look for the node of " + key.ToString());
  }
  // Marked as the pod garbage collector does it: a launcher that was disrupted is no failed try of the Job.
  Json condition = Json::MakeObject({{"type", "DisruptionTarget"},
                                     {"status", "True"},
                                     {"reason", "NodeLost"},
                                     {"message", "node " + std::string(pod->spec.node_name) + " is gone"},
                                     {"lastTransitionTime", kube::ToText(view.now)}});
  Json patch = Json::MakeObject();
  patch["metadata"]["uid"] = std::string(pod->metadata.uid);
  patch["status"] = Json::MakeObject({{"phase", "Failed"}, {"conditions", Json::MakeArray({std::move(condition)})}});
  kube::WriteOptions options;
  options.subresource = "status";
  const auto marked = client_.Patch(KindOf<kube::Pod>(), key, kube::PatchType::kStrategicMerge, patch, options, stop);
  if (!marked && marked.error().code() == ErrorCode::kNotFound) return {};
  if (!marked) return kube::Error(marked.error()).with("mark the lost pod " + key.ToString());
  kube::DeleteOptions force;
  force.grace_period_seconds = 0;
  return writer.Delete(KindOf<kube::Pod>(), *pod, force);
}

Status ElasticReconciler::WritePods(const View& view, const Plan& plan, ChildWriter& writer, std::stop_token stop) {
  const kube::Kind& kind = KindOf<kube::Pod>();
  const std::string& ns = view.job->metadata.ns;
  for (const std::string& name : plan.bury) {
    if (Status done = Bury({ns, name}, view, writer, stop); !done) return done;
  }
  for (const Worker* worker : plan.park) {
    const auto pod = caches_.pods.Get<kube::Pod>({ns, worker->name});
    if (!pod || pod->metadata.uid != worker->uid) continue;
    // The version is a precondition: a pod that was bound meanwhile stays.
    kube::DeleteOptions options;
    options.resource_version = worker->resource_version;
    Status done = writer.Delete(kind, *pod, options);
    if (!done && done.error().code() != ErrorCode::kConflict) return done;
  }
  for (const Worker* worker : plan.lift) {
    const auto pod = caches_.pods.Get<kube::Pod>({ns, worker->name});
    if (!pod || pod->metadata.uid != worker->uid) continue;
    for (std::size_t i = 0; i < pod->spec.scheduling_gates.size(); ++i) {
      if (pod->spec.scheduling_gates[i].name != api::kParkGate) continue;
      kube::JsonPatch patch;
      patch.Test({"metadata", "uid"}, worker->uid);
      patch.Test({"spec", "schedulingGates", std::to_string(i), "name"}, api::kParkGate);
      patch.Remove({"spec", "schedulingGates", std::to_string(i)});
      if (pod->metadata.annotations.empty()) patch.Add({"metadata", "annotations"}, Json::MakeObject());
      patch.Add({"metadata", "annotations", kLiftedAnnotation}, kube::ToText(kube::Time{clock_.WallNow()}));
      if (Status done = writer.Patch(kind, worker->name, patch); !done) return done;
    }
  }
  return {};
}

Status ElasticReconciler::WriteHosts(const View& view, const Plan& plan, const Children& children,
                                     ChildWriter& writer) {
  const ElasticHorovodJob& job = *view.job;
  const kube::Kind& kind = KindOf<kube::ConfigMap>();
  if (!plan.hosts) {
    if (!children.hosts || children.hosts->metadata.is_being_deleted()) return {};
    return writer.Delete(kind, *children.hosts);
  }
  if (!children.hosts) {
    const bool was_there = HasStarted(job) || !VerifiedOf(job).hosts_version.empty();
    if (Status made = writer.Create(kind, MakeHosts(job, *plan.hosts), was_there); !made) return made;
  } else {
    Json wanted = MakeHosts(job, *plan.hosts);
    for (const auto& [file, text] : children.hosts->data) {  // Launchers that an older grus made have a script there.
      if (wanted["data"].Find(file) == nullptr) wanted["data"][file] = text;
    }
    const bool is_verified = VerifiedOf(job).hosts_version == children.hosts->metadata.resource_version;
    const bool is_new_list = !view.hosts || view.hosts->revision != plan.hosts->revision;
    const bool is_right = !is_new_list && (is_verified || (HasLabels(children.hosts->metadata, wanted) &&
                                                           *wanted.Find("data") == children.hosts->data_json()));
    if (!is_right) {
      if (Status done = writer.Restore(kind, std::string(children.hosts->metadata.uid), wanted); !done) return done;
    }
  }
  for (const LauncherPod* pod : plan.push_hosts_to) {
    // Delivered with the pod itself, which the kubelet watches: a mounted ConfigMap may lag by a minute.
    Json patch = Json::MakeObject();
    patch["metadata"]["uid"] = pod->uid;
    patch["metadata"]["annotations"][kHostsAnnotation] = HostListText(*plan.hosts);
    auto pushed = client_.Patch(KindOf<kube::Pod>(), {job.metadata.ns, pod->name}, kube::PatchType::kMerge, patch);
    if (!pushed && pushed.error().code() != ErrorCode::kNotFound) {
      return std::move(pushed).error().with("push the host list to Pod " + job.metadata.ns + "/" + pod->name);
    }
    if (pushed) {
      writes_.Note(job.metadata.Key(), std::string(job.metadata.uid), KindOf<kube::Pod>(),
                   std::string((*pushed)->metadata.resource_version));
    }
  }
  return {};
}

Status ElasticReconciler::EndStrayLaunchers(const View& view, ChildWriter& writer, std::stop_token stop) {
  // Where there was a launcher before, its pod may be younger than our cache of pods.
  if (!view.has_stray_launcher && !view.hosts) return {};
  const std::string job = view.job->metadata.Key().ToString();
  kube::ListOptions options;
  options.label_selector = std::string(kJobNameLabel) + "=" + view.job->metadata.name + "," + kRoleLabel +
                           "=launcher," + kManagedByLabel + "=" + kManagedBy;
  const auto pods = client_.List(KindOf<kube::Pod>(), view.job->metadata.ns, options, stop);
  if (!pods) return kube::Error(pods.error()).with("list the launcher's pods of " + job);
  std::vector<std::shared_ptr<const kube::Pod>> strays;
  for (const auto& object : pods->items) {
    const auto pod = std::static_pointer_cast<const kube::Pod>(object);
    if (!HasEnded(*pod)) strays.push_back(pod);
  }
  if (strays.empty()) return {};
  // Our cache does not see a launcher that lost our label; its pods are no strays.
  const auto launcher = client_.Get(KindOf<kube::Job>(), {view.job->metadata.ns, LauncherName(*view.job)}, stop);
  if (!launcher && launcher.error().code() != ErrorCode::kNotFound) {
    return kube::Error(launcher.error()).with("look for the launcher of " + job);
  }
  const bool is_hidden = launcher && std::any_of(strays.begin(), strays.end(), [&](const auto& stray) {
                           const kube::OwnerReference* owner = stray->metadata.Controller();
                           return owner != nullptr && owner->uid == (*launcher)->metadata.uid;
                         });
  if (is_hidden) return {};
  for (const auto& stray : strays) {
    if (stray->metadata.is_being_deleted()) continue;
    Status ended = writer.Delete(KindOf<kube::Pod>(), *stray);
    if (!ended && ended.error().code() != ErrorCode::kConflict) return ended;
  }
  const std::string stray = "pod " + strays.front()->metadata.name;
  return kube::Error(ErrorCode::kConflict, stray + " of the launcher before is not gone yet")
      .with("start the launcher of " + job);
}

Status ElasticReconciler::WriteLauncher(const View& view, const Plan& plan, const Children& children,
                                        ChildWriter& writer, std::stop_token stop) {
  const ElasticHorovodJob& job = *view.job;
  const kube::Kind& kind = KindOf<kube::Job>();
  if (plan.restart_launcher) {
    if (!children.launcher || children.launcher->metadata.is_being_deleted()) return {};
    return writer.Delete(kind, *children.launcher);
  }
  if (!plan.wants_launcher) return {};
  if (!children.launcher) {
    if (Status gone = EndStrayLaunchers(view, writer, stop); !gone) return gone;
    const bool was_there = HasStarted(job) || VerifiedOf(job).launcher_generation > 0;
    return writer.Create(kind, MakeLauncher(job), was_there);
  }
  const kube::Job& launcher = *children.launcher;
  if (launcher.metadata.is_being_deleted() || view.launcher != LauncherState::kActive) return {};
  if (VerifiedOf(job).launcher_generation == launcher.metadata.generation &&
      HasLabels(launcher.metadata, job, "launcher")) {
    return {};
  }
  // A Job's template cannot be changed: a new launcherSpec counts from the next start on.
  Json wanted = MakeLauncher(job);
  wanted["spec"].Erase("template");
  wanted["spec"].Erase("podFailurePolicy");
  wanted["spec"]["suspend"] = false;
  if (HasLabels(launcher.metadata, wanted) && kube::IsCovered(*wanted.Find("spec"), launcher.spec_json)) return {};
  return writer.Restore(kind, std::string(launcher.metadata.uid), wanted);
}

void ElasticReconciler::SetVerified(const ElasticHorovodJob& job, const Children& children) {
  verified_.With(job.metadata, [&](Verified& verified) {
    if (children.service) verified.service_version = children.service->metadata.resource_version;
    if (children.hosts) verified.hosts_version = children.hosts->metadata.resource_version;
    if (children.workers) verified.workers_generation = children.workers->metadata.generation;
    if (children.launcher) verified.launcher_generation = children.launcher->metadata.generation;
  });
}

}  // namespace grus

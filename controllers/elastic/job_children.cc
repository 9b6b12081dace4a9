// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_children.h"

#include <algorithm>

#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_status.h"
#include "controllers/elastic/pod_templates.h"
#include "controllers/elastic/scripts.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::ErrorCode;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;
using kube::Result;
using kube::Status;

// The phases that a job reaches only with all of its children.
bool HasStarted(const ElasticHorovodJob& job) {
  return job.status.phase == kPhaseStarting || job.status.phase == kPhaseRunning;
}

// The object as the API server has it; null: it is not there.
template <typename T>
Result<std::shared_ptr<T>> LookFor(kube::Client& client, const ObjectKey& key, std::stop_token stop = {}) {
  Result<std::shared_ptr<T>> live = client.Get<T>(key, std::move(stop));
  if (live) return live;
  if (live.error().code() == ErrorCode::kNotFound) return std::shared_ptr<T>();
  return std::move(live).error().with("look for " + std::string(KindOf<T>().kind) + " " + key.ToString());
}

template <typename T>
std::shared_ptr<const T> OwnedChild(const kube::Informer* cache, const ElasticHorovodJob& job,
                                    const std::string& name) {
  auto child = cache ? cache->Get<T>({job.metadata.ns, name}) : nullptr;
  return child && IsControlledBy(*child, &job) ? child : nullptr;
}

// Launchers that an older grus made do not mount the Secret with the scripts.
bool HasScripts(const kube::Job& launcher) {
  return HasItem(launcher.spec_json.At({"template", "spec", "volumes"}), "name", kJobVolume);
}

template <typename T>
WantedChild ChildOf(const JobPass& pass, const std::shared_ptr<const T>& live) {
  return {.kind = KindOf<T>(), .live = live, .was_there = HasStarted(*pass.view.job)};
}

}  // namespace

bool IsControlledBy(const kube::Object& child, const kube::Object* owner) {
  const kube::OwnerReference* controller = child.metadata.Controller();
  return owner != nullptr && controller != nullptr && controller->uid == owner->metadata.uid;
}

Children JobChildren::Find(const ElasticHorovodJob& job) const {
  return {OwnedChild<kube::Service>(&caches_.services, job, ServiceName(job)),
          OwnedChild<kube::StatefulSet>(&caches_.stateful_sets, job, WorkersName(job)),
          OwnedChild<kube::ConfigMap>(&caches_.config_maps, job, HostsName(job)),
          OwnedChild<kube::Job>(&caches_.launchers, job, LauncherName(job)),
          OwnedChild<api::PodGroup>(caches_.groups, job, GroupName(job))};
}

ChildWriter JobChildren::WriterFor(const ElasticHorovodJob& job, kube::WriteTracker& writes, std::stop_token stop) {
  return ChildWriter(client_, writes, &marks_, KindOf<ElasticHorovodJob>(), job.metadata, std::move(stop));
}

bool JobChildren::ArePodsCurrent(const ElasticHorovodJob& job) {
  const std::string started = started_version_.Get(job.metadata);
  if (started.empty()) return true;
  if (kube::IsOlder(caches_.pods.store().resource_version(job.metadata.ns), started)) return false;
  started_version_.Forget(job.metadata.Key());
  return true;
}

void JobChildren::Forget(const ObjectKey& key) {
  marks_.Forget(key);
  started_version_.Forget(key);
}

Status JobChildren::WriteWorkers(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  const std::optional<WorkersState>& planned = pass.plan.workers;
  if (Status done = WriteSecret(pass); !done) return done;

  WantedChild group = ChildOf(pass, pass.children.group);
  if (planned && planned->replicas > 0 && planned->gang != Gang::kNone) {
    group.make = [&](bool) { return MakeGroup(job); };
    group.is_right = [&](const Json&) {
      return pass.children.group->spec.min_member == SizesOf(job.spec).NeededToRun();
    };
  }
  if (Status done = pass.writer.Bring(group); !done) return done;

  const int writes_before = pass.writer.writes();
  if (Status done = WriteStatefulSet(pass); !done) return done;
  const bool had_workers = pass.view.workers && pass.view.workers->replicas > 0;
  if (pass.writer.writes() > writes_before && !had_workers && planned && planned->replicas > 0) {
    started_version_.With(job.metadata, [&](std::string& version) { version = pass.writer.last_version(); });
  }
  return WritePods(pass);
}

Status JobChildren::WriteLauncher(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  WantedChild service = ChildOf(pass, pass.children.service);
  if (pass.plan.hosts) {
    service.make = [&](bool) { return MakeService(job); };
    service.is_right = [&](const Json& wanted) {
      const kube::Service& live = *pass.children.service;
      return live.spec.selector.size() == wanted.At({"spec", "selector"})->AsObject()->size() &&
             kube::IsCovered(*wanted.Find("spec"), live.spec_json);
    };
  }
  if (Status done = pass.writer.Bring(service); !done) return done;
  if (Status done = WriteHosts(pass); !done) return done;
  return WriteJob(pass);
}

// The Secret is made and deleted before the StatefulSet, so that a StatefulSet shows that there was a Secret. We do not
// watch Secrets, so grus needs no permission to list them.
Status JobChildren::WriteSecret(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  const kube::StatefulSet* const workers = pass.children.workers.get();
  if (!pass.plan.workers) {
    if (!workers || workers->metadata.is_being_deleted()) return {};
    const ObjectKey secret{job.metadata.ns, SecretName(job)};
    Status gone = client_.Delete(KindOf<kube::Secret>(), secret);
    return gone ? Status() : std::move(gone).error().with("delete Secret " + secret.ToString());
  }
  const bool is_old = workers && workers->metadata.labels.Get(kFilesLabel).empty();
  if (workers && !is_old && !pass.plan.check_secret) return {};
  std::optional<SshKey> key;
  if (workers) {
    const auto live = LookFor<kube::Secret>(client_, {job.metadata.ns, SecretName(job)});
    if (!live) return live.error();
    if (*live) return {};
    // Pods may run with the key in the Secret that an older grus made.
    const std::string old_name = job.metadata.name + "-ssh-" + job.metadata.uid;
    const auto old = LookFor<kube::Secret>(client_, {job.metadata.ns, old_name});
    if (!old) return old.error();
    if (*old) key = KeyIn(**old);
  }
  if (!key) {
    Result<SshKey> made = MakeSshKey(job.metadata.Key().ToString());
    if (!made) return std::move(made).error();
    key = *std::move(made);
  }
  return pass.writer.CreateOrTake(
      KindOf<kube::Secret>(), [&](bool) { return MakeSecret(job, *key); }, HasStarted(job));
}

Result<bool> JobChildren::RestoreHiddenWorkers(const ElasticHorovodJob& job, ChildWriter& writer,
                                               std::stop_token stop) {
  const auto live = LookFor<kube::StatefulSet>(client_, {job.metadata.ns, WorkersName(job)}, std::move(stop));
  if (!live) return live.error();
  if (!*live) return false;
  const kube::ObjectMeta& metadata = (*live)->metadata;
  if (!IsControlledBy(**live, &job) || metadata.is_being_deleted()) return false;
  Status restored =
      writer.Restore(KindOf<kube::StatefulSet>(), metadata.uid, MakeWorkers(job, ReadWorkersState(**live)));
  if (!restored) return std::move(restored).error();
  return true;
}

// Bring() repairs all but the size; a new size alone is the smaller patch that follows.
Status JobChildren::WriteStatefulSet(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  const kube::StatefulSet* const set = pass.children.workers.get();
  WantedChild child = ChildOf(pass, pass.children.workers);
  if (!pass.plan.workers) return pass.writer.Bring(child);

  const WorkersState& wanted_size = *pass.plan.workers;
  const WorkersState size = pass.view.workers.value_or(WorkersState{});
  const bool is_other_template = size.is_gated != wanted_size.is_gated || size.gang != wanted_size.gang;
  child.make = [&](bool) { return MakeWorkers(job, wanted_size); };
  // Compare at the present size: the patch below changes it.
  child.is_right = [&](const Json&) {
    const Json as_is = MakeWorkers(job, size);
    // IsCovered() does not see that the spec has lost a field; the hash shows that the template changed.
    return set->metadata.annotations.Get(kTemplateAnnotation) ==
               *as_is.At({"metadata", "annotations", kTemplateAnnotation})->AsString() &&
           kube::IsCovered(*as_is.Find("spec"), set->spec_json);
  };
  const int writes_before = pass.writer.writes();
  Status done = pass.writer.Bring(child);
  const bool is_as_it_was = done && pass.writer.writes() == writes_before;
  const bool is_same_size = size.replicas == wanted_size.replicas && size.granted == wanted_size.granted;
  if (!is_as_it_was || set->metadata.is_being_deleted() || (is_same_size && !is_other_template)) return done;

  kube::JsonPatch patch;
  patch.Test({"metadata", "uid"}, std::string(set->metadata.uid));
  patch.Test({"spec", "replicas"}, size.replicas);
  patch.Add({"spec", "replicas"}, wanted_size.replicas);
  if (set->metadata.annotations.empty()) patch.Add({"metadata", "annotations"}, Json::MakeObject());
  patch.Add({"metadata", "annotations", kGrantedAnnotation}, std::to_string(wanted_size.granted));
  if (is_other_template) {
    const Json wanted = MakeWorkers(job, wanted_size);
    patch.Add({"metadata", "annotations", kTemplateAnnotation},
              *wanted.At({"metadata", "annotations", kTemplateAnnotation}));
    patch.Add({"spec", "template"}, *wanted.At({"spec", "template"}));
  }
  return pass.writer.Patch(child.kind, set->metadata.name, patch);
}

Status JobChildren::Bury(const std::string& name, const JobPass& pass) {
  const ObjectKey key{pass.view.job->metadata.ns, name};
  const auto pod = caches_.pods.Get<kube::Pod>(key);
  if (!pod) return {};
  // The cache may be older than the node: ask before a pod that might run is deleted by force.
  const std::string node_name(pod->spec.node_name);
  const auto node = LookFor<kube::Node>(client_, {"", node_name}, pass.stop);
  if (!node) return node.error();
  if (*node) return {};
  // Mark the pod as the pod garbage collector does: a disrupted launcher does not count as failed for the Job.
  Json condition = Json::MakeObject({{"type", "DisruptionTarget"},
                                     {"status", "True"},
                                     {"reason", "NodeLost"},
                                     {"message", "node " + node_name + " is gone"},
                                     {"lastTransitionTime", kube::ToText(pass.view.now)}});
  Json patch;
  patch["metadata"]["uid"] = pod->metadata.uid;
  patch["status"]["phase"] = "Failed";
  patch["status"]["conditions"].Append(std::move(condition));
  auto marked = client_.Patch(KindOf<kube::Pod>(), key, kube::PatchType::kStrategicMerge, patch,
                              {.subresource = "status"}, pass.stop);
  if (!marked && marked.error().code() == ErrorCode::kNotFound) return {};
  if (!marked) return std::move(marked).error().with("mark the lost pod " + key.ToString());
  return pass.writer.Delete(KindOf<kube::Pod>(), pod->metadata, {.grace_period_seconds = 0});
}

Status JobChildren::WritePods(const JobPass& pass) {
  const kube::Kind& kind = KindOf<kube::Pod>();
  const std::string& ns = pass.view.job->metadata.ns;
  const auto find = [&](const Worker& worker) {
    auto pod = caches_.pods.Get<kube::Pod>({ns, worker.name});
    return pod && pod->metadata.uid == worker.uid ? pod : nullptr;
  };
  for (const std::string& name : pass.plan.bury) {
    if (Status done = Bury(name, pass); !done) return done;
  }
  for (const Worker* worker : pass.plan.park) {
    const auto pod = find(*worker);
    if (!pod) continue;
    // The version is a precondition: a pod that was bound meanwhile stays.
    Status done = pass.writer.Delete(kind, pod->metadata, {.resource_version = worker->resource_version});
    if (!done && done.error().code() != ErrorCode::kConflict) return done;
  }
  for (const Worker* worker : pass.plan.lift) {
    const auto pod = find(*worker);
    if (!pod) continue;
    for (std::size_t i = 0; i < pod->spec.scheduling_gates.size(); ++i) {
      if (pod->spec.scheduling_gates[i].name != api::kParkGate) continue;
      kube::JsonPatch patch;
      patch.Test({"metadata", "uid"}, worker->uid);
      patch.Test({"spec", "schedulingGates", std::to_string(i), "name"}, api::kParkGate);
      patch.Remove({"spec", "schedulingGates", std::to_string(i)});
      if (pod->metadata.annotations.empty()) patch.Add({"metadata", "annotations"}, Json::MakeObject());
      patch.Add({"metadata", "annotations", kLiftedAnnotation}, kube::ToText(kube::Time{clock_.WallNow()}));
      if (Status done = pass.writer.Patch(kind, worker->name, patch); !done) return done;
    }
  }
  return {};
}

Status JobChildren::WriteHosts(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  const kube::ConfigMap* const live = pass.children.hosts.get();
  const std::optional<HostList>& list = pass.plan.hosts;
  WantedChild child = ChildOf(pass, pass.children.hosts);
  if (!list) return pass.writer.Bring(child);

  child.has_changed = !pass.view.hosts || pass.view.hosts->revision != list->revision;
  child.make = [&](bool) {
    Json wanted = MakeHosts(job, *list);
    if (!pass.children.launcher || HasScripts(*pass.children.launcher)) return wanted;
    // The launcher comes from an older grus, and looks for its script here.
    const auto script = live ? live->data.find(kDiscoveryFile) : std::map<std::string, std::string>::const_iterator();
    wanted["data"][kDiscoveryFile] = live && script != live->data.end() ? script->second : DiscoveryScript();
    return wanted;
  };
  child.is_right = [&](const Json& wanted) { return *wanted.Find("data") == live->data_json(); };
  if (Status done = pass.writer.Bring(child); !done) return done;

  for (const LauncherPod* pod : pass.plan.push_hosts_to) {
    // The kubelet watches the pod, so the annotation arrives at once; a mounted ConfigMap may lag by a minute.
    Json patch = Json::MakeObject();
    patch["metadata"]["annotations"][kHostsAnnotation] = HostListText(*list);
    Status pushed = pass.writer.Merge(KindOf<kube::Pod>(), pod->name, pod->uid, std::move(patch));
    if (!pushed && pushed.error().code() != ErrorCode::kNotFound) return pushed;
  }
  return {};
}

Status JobChildren::EndStrayLaunchers(const JobPass& pass) {
  const View& view = pass.view;
  // If there was a launcher before, its pod may be newer than our cache of pods.
  if (!view.has_stray_launcher && !view.hosts) return {};
  const std::string job = view.job->metadata.Key().ToString();
  const kube::ListOptions its_launchers{.label_selector = std::string(kJobNameLabel) + "=" + view.job->metadata.name +
                                                          "," + kRoleLabel + "=launcher," + kManagedByLabel + "=" +
                                                          kManagedBy};
  auto pods = client_.List(KindOf<kube::Pod>(), view.job->metadata.ns, its_launchers, pass.stop);
  if (!pods) return std::move(pods).error().with("list the launcher's pods of " + job);
  auto& strays = pods->items;
  std::erase_if(strays, [](const auto& pod) { return HasEnded(static_cast<const kube::Pod&>(*pod)); });
  if (strays.empty()) return {};
  // Our cache does not see a launcher that lost our label; its pods are no strays.
  const auto launcher = LookFor<kube::Job>(client_, {view.job->metadata.ns, LauncherName(*view.job)}, pass.stop);
  if (!launcher) return launcher.error();
  for (const auto& stray : strays) {
    if (IsControlledBy(*stray, launcher->get())) return {};
  }
  for (const auto& stray : strays) {
    if (stray->metadata.is_being_deleted()) continue;
    Status ended = pass.writer.Delete(KindOf<kube::Pod>(), stray->metadata);
    if (!ended && ended.error().code() != ErrorCode::kConflict) return ended;
  }
  const std::string stray = "pod " + strays.front()->metadata.name;
  return kube::Error(ErrorCode::kConflict, stray + " of the launcher before is not gone yet")
      .with("start the launcher of " + job);
}

Status JobChildren::WriteJob(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  const kube::Job* const live = pass.children.launcher.get();
  WantedChild child = ChildOf(pass, pass.children.launcher);
  if (pass.plan.restart_launcher) return pass.writer.Bring(child);
  if (!pass.plan.wants_launcher) return {};
  if (live && pass.view.launcher != LauncherState::kActive) return {};
  if (!live) {
    if (Status gone = EndStrayLaunchers(pass); !gone) return gone;
  }
  child.make = [&](bool is_there) {
    Json wanted = MakeLauncher(job);
    if (!is_there) return wanted;
    // A Job's template cannot be changed: a new launcherSpec counts from the next start on.
    wanted["spec"].Erase("template");
    wanted["spec"].Erase("podFailurePolicy");
    wanted["spec"]["suspend"] = false;
    return wanted;
  };
  child.is_right = [&](const Json& wanted) { return kube::IsCovered(*wanted.Find("spec"), live->spec_json); };
  return pass.writer.Bring(child);
}

}  // namespace grus

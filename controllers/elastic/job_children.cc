// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_children.h"

#include <algorithm>
#include <set>
#include <utility>

#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_status.h"
#include "controllers/elastic/pod_templates.h"
#include "controllers/elastic/scripts.h"
#include "controllers/frame/look_for.h"
#include "controllers/frame/refusals.h"
#include "controllers/policy/pod_security.h"
#include "controllers/policy/yield_words.h"

namespace grus {
namespace {

using api::ElasticHorovodJob;
using kube::Error;
using kube::ErrorCode;
using kube::Json;
using kube::KindOf;
using kube::ObjectKey;
using kube::Result;
using kube::Status;

// How many names of workers objects of others may have before the job says so.
constexpr int kNamesTakenByOthers = 16;

// The phases that a job reaches only with all of its children.
bool HasStarted(const ElasticHorovodJob& job) {
  return job.status.phase == kPhaseStarting || job.status.phase == kPhaseRunning;
}

template <typename T>
std::shared_ptr<const T> OwnedChild(const kube::Informer* cache, const ElasticHorovodJob& job,
                                    const std::string& name) {
  auto child = cache ? cache->Get<T>({job.metadata.ns, name}) : nullptr;
  return child && IsControlledBy(*child, &job) ? child : nullptr;
}

template <typename T>
WantedChild ChildOf(const JobPass& pass, const std::shared_ptr<const T>& live) {
  return {.kind = KindOf<T>(), .live = live, .was_there = HasStarted(*pass.view.job)};
}

// For the next worker: one of `preferred` that is free, else the lowest from `lowest` on that is free. It is taken
// then.
int NextOrdinal(std::set<int>& taken, std::set<int>& preferred, int& lowest) {
  while (!preferred.empty()) {
    const int ordinal = preferred.extract(preferred.begin()).value();
    if (taken.insert(ordinal).second) return ordinal;
  }
  while (!taken.insert(lowest).second) ++lowest;
  return lowest;
}

}  // namespace

bool IsControlledBy(const kube::Object& child, const kube::Object* owner) {
  const kube::OwnerReference* controller = child.metadata.Controller();
  return owner != nullptr && controller != nullptr && controller->uid == owner->metadata.uid;
}

Children JobChildren::Find(const ElasticHorovodJob& job) const {
  return {OwnedChild<kube::Service>(&caches_.services, job, ServiceName(job)),
          OwnedChild<kube::ConfigMap>(&caches_.config_maps, job, HostsName(job)),
          OwnedChild<kube::Job>(&caches_.launchers, job, LauncherName(job)),
          OwnedChild<api::PodGroup>(caches_.groups, job, GroupName(job))};
}

ChildWriter JobChildren::WriterFor(const ElasticHorovodJob& job, kube::WriteTracker& writes, std::stop_token stop) {
  return ChildWriter(client_, writes, &marks_, KindOf<ElasticHorovodJob>(), job.metadata, std::move(stop));
}

Status JobChildren::WriteWorkers(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  const std::optional<WorkersState>& planned = pass.plan.workers;
  if (Status done = WriteSecret(pass); !done) return done;

  WantedChild group = ChildOf(pass, pass.children.group);
  if (planned && planned->granted + pass.plan.early > 0 && planned->gang != Gang::kNone) {
    group.make = [&](bool) { return MakeGroup(job); };
    group.is_right = [&](const Json&) {
      return pass.children.group->spec.min_member == SizesOf(job.spec).NeededToRun();
    };
  }
  if (Status done = pass.writer.Bring(group); !done) return done;

  for (const std::string& name : pass.plan.bury) {
    if (Status done = Bury(name, pass); !done) return done;
  }
  return {};
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
  if (Status done = TellDeadline(pass); !done) return done;
  return WriteJob(pass);
}

// grus may create Secrets and NetworkPolicies and do nothing else with them: those of their names are there, or are
// made, and go with the job. They are made before the first worker, so that a worker shows that there were some.
Status JobChildren::WriteSecret(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  if (!pass.plan.workers) return {};
  if (pass.view.alive() > 0 ? !pass.plan.check_secret : pass.plan.missing == 0) return {};
  if (HasStarted(job)) {
    if (Status confirmed = pass.writer.ConfirmOwner(); !confirmed) return confirmed;
  }
  const auto make = [&](const kube::Kind& kind, const Json& object) {
    Status made = pass.writer.Create(kind, object);
    return made || made.error().code() == ErrorCode::kAlreadyExists ? Status() : std::move(made);
  };
  if (caches_.guards_ssh) {
    if (Status made = make(KindOf<kube::NetworkPolicy>(), MakeSshPolicy(job)); !made) return made;
  }
  const Result<JobKeys> keys = MakeJobKeys(job.metadata.Key().ToString());
  if (!keys) return keys.error();
  return make(KindOf<kube::Secret>(), MakeSecret(job, *keys));
}

Status JobChildren::MakeWorkers(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  std::set<int> taken;
  for (const Worker& worker : pass.view.pods) taken.insert(worker.ordinal);
  // The job may have lost all its workers because it is being deleted.
  const bool was_there = HasStarted(job) || pass.view.granted() > 0;
  std::set<int> unknown;
  unknown_.With(job.metadata, [&](std::set<int>& kept) { unknown = std::exchange(kept, {}); });
  int left = pass.plan.missing, lowest = 0;
  const std::vector<std::string>& nodes = pass.plan.nodes;
  std::size_t made_workers = 0;
  for (int tries = 2 * left + kNamesTakenByOthers; left > 0 && tries > 0; --tries) {
    const int ordinal = NextOrdinal(taken, unknown, lowest);
    const auto make = [&](bool is_there) {
      Json pod = MakeWorker(job, ordinal, pass.plan.workers->gang);
      if (made_workers < nodes.size()) PreferNode(pod["spec"], nodes[made_workers]);
      if (pass.view.fills_pod_security) FillPodSecurity(pod);
      if (is_there) pod.Erase("spec");  // It has only lost our labels.
      return pod;
    };
    Status made = pass.writer.CreateOrTake(KindOf<kube::Pod>(), make, was_there);
    if (made) {
      ++made_workers;
      --left;
      continue;
    }
    const ErrorCode code = made.error().code();
    const bool is_name_taken = code == ErrorCode::kAlreadyExists || code == ErrorCode::kConflict;
    if (is_name_taken && tries > 1) continue;
    if (!is_name_taken) unknown_.With(job.metadata, [&](std::set<int>& kept) { kept.insert(ordinal); });
    return made;
  }
  return {};
}

void JobChildren::Forget(const ObjectKey& key) {
  marks_.Forget(key);
  dropped_.Forget(key);
  unknown_.Forget(key);
}

void JobChildren::MarkDropped(View& view) {
  dropped_.With(view.job->metadata, [&](std::set<std::string>& dropped) {
    std::set<std::string> seen;
    for (Worker& worker : view.pods) {
      if (!dropped.contains(worker.uid)) continue;
      worker.is_ending = true;
      worker.has_ended = false;
      seen.insert(worker.uid);
    }
    dropped = std::move(seen);
  });
}

Status JobChildren::DropWorkers(const JobPass& pass) {
  const View& view = pass.view;
  const auto drop = [&](const Worker& worker) -> Status {
    const auto pod = caches_.pods.Get<kube::Pod>({view.job->metadata.ns, worker.name});
    if (!pod || pod->metadata.uid != worker.uid || pod->metadata.is_being_deleted()) return {};
    // The version is a precondition for a pod without a node: one that was bound meanwhile stays.
    kube::DeleteOptions options;
    if (!worker.is_bound && pass.plan.workers && pass.plan.workers->granted > 0) {
      options.resource_version = worker.resource_version;
    }
    Status done = pass.writer.Delete(KindOf<kube::Pod>(), pod->metadata, options);
    if (!done) return done.error().code() == ErrorCode::kConflict ? Status() : std::move(done);
    dropped_.With(view.job->metadata, [&](std::set<std::string>& dropped) { dropped.insert(worker.uid); });
    return {};
  };
  // Those without a node first: otherwise the scheduler may give them what the others leave. One failure is no reason
  // to keep the rest.
  Status all;
  for (const bool is_bound : {false, true}) {
    for (const Worker* worker : pass.plan.drop) {
      if (worker->is_bound != is_bound) continue;
      all = kube::FirstFailure(std::move(all), drop(*worker));
    }
  }
  return all;
}

Status JobChildren::Bury(const std::string& name, const JobPass& pass) {
  const ObjectKey key{pass.view.job->metadata.ns, name};
  const auto pod = caches_.pods.Get<kube::Pod>(key);
  if (!pod) return {};
  const std::string node_name(pod->spec.node_name);
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

Status JobChildren::WriteHosts(const JobPass& pass) {
  const ElasticHorovodJob& job = *pass.view.job;
  const std::optional<HostList>& list = pass.plan.hosts;
  WantedChild child = ChildOf(pass, pass.children.hosts);
  if (!list) return pass.writer.Bring(child);

  child.has_changed = !pass.view.hosts || pass.view.hosts->revision != list->revision;
  child.make = [&](bool) { return MakeHosts(job, *list); };
  child.is_right = [&](const Json& wanted) { return *wanted.Find("data") == pass.children.hosts->data_json(); };
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

Status JobChildren::TellDeadline(const JobPass& pass) {
  for (const LauncherPod* pod : pass.plan.tell_deadline_to) {
    Json patch = Json::MakeObject();
    Json& deadline = patch["metadata"]["annotations"][kPreemptionDeadlineAnnotation];
    if (!pass.plan.deadline.empty()) deadline = pass.plan.deadline;
    Status told = pass.writer.Merge(KindOf<kube::Pod>(), pod->name, pod->uid, std::move(patch));
    if (!told && told.error().code() != ErrorCode::kNotFound) return told;
  }
  return {};
}

Status JobChildren::EndStrayLaunchers(const JobPass& pass) {
  const View& view = pass.view;
  // If there was a launcher before, its pod may be newer than our cache of pods.
  if (!view.has_stray_launcher && !view.had_launcher && !view.hosts) return {};
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
    if (pass.view.fills_pod_security) FillPodSecurity(wanted["spec"]["template"]);
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

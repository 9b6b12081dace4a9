// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/app.h"

#include <optional>
#include <utility>

#include "clientlib/model/events_v1.h"
#include "clientlib/model/scheduling_v1.h"
#include "controllers/allocator/queue_reconciler.h"
#include "controllers/cluster/nomination_probe.h"
#include "controllers/elastic/elastic_children.h"
#include "controllers/elastic/elastic_reconciler.h"
#include "controllers/gang/gang_reconciler.h"
#include "controllers/manager/extender_controller.h"
#include "controllers/manager/leader_gate.h"
#include "controllers/manager/shared.h"
#include "controllers/policy/gpushare_gpus.h"
#include "controllers/profile/profile_keeper.h"
#include "controllers/profile/running_jobs.h"
#include "controllers/profiler/job_metrics.h"
#include "controllers/profiler/progress_watch.h"
#include "controllers/profiler/usage_watch.h"
#include "controllers/trial/trial_reconciler.h"

namespace grus {
namespace {

using kube::KindOf;

constexpr char kReportingController[] = "ai.centauruscloud.io/grus-manager";

// WorkloadProfiles that nobody writes just now.
struct ProfileController {
  ProfileController(const Shared& with, ProfileStore& store)
      : keeper(*with.profiles, store, with.clock, std::chrono::hours(24 * with.options.profile_days)) {
    keeper.FeedQueue(with.Run(keeper, "workloadprofile", 1));
  }

  ProfileKeeper keeper;
};

// ElasticHorovodJobs and what belongs to them.
struct ElasticController {
  explicit ElasticController(const Shared& with)
      : quotas(with.manager.AddInformer(KindOf<kube::ResourceQuota>(), Optional(Everything(with.options)))),
        reconciler(with.client, MakeCaches(with, quotas), with.account, with.events, with.clock, with.log) {
    reconciler.FeedQueue(with.Run(reconciler, "elastichorovodjob", with.options.reconcile_threads));
  }

  static ElasticCaches MakeCaches(const Shared& with, Quotas& quotas) {
    kube::InformerOptions ours = Everything(with.options);
    ours.label_selector = std::string(kManagedByLabel) + "=" + kManagedBy;
    return {*with.jobs,
            with.manager.AddInformer(KindOf<kube::Service>(), ours),
            with.manager.AddInformer(KindOf<kube::ConfigMap>(), ours),
            with.manager.AddInformer(KindOf<kube::Job>(), ours),
            with.pods,
            with.nodes,
            with.manager.AddInformer(KindOf<kube::PriorityClass>(), Optional({})),
            quotas,
            with.groups,
            with.profiles,
            with.options.profile_trust,
            with.options.ssh_network_policies};
  }

  Quotas quotas;
  ElasticReconciler reconciler;
};

// TrialJobs and the jobs of their trials; the running jobs that are compared with their profiles.
struct TrialController {
  TrialController(const Shared& with, ProfileStore& store)
      : prometheus(with.to_prometheus, with.clock, with.options.prometheus_servers),
        reconciler(with.client,
                   {with.manager.AddInformer(KindOf<api::TrialJob>(), Everything(with.options)), *with.jobs, with.pods,
                    with.nodes, with.groups},
                   with.account, store, prometheus, with.events, with.clock, with.log),
        running(with.client, {*with.jobs, with.pods, with.nodes, *with.profiles}, store, with.events, with.clock,
                with.log) {
    reconciler.FeedQueue(with.Run(reconciler, "trialjob", with.options.reconcile_threads));
    running.FeedQueue(with.Run(running, "running-jobs", 1));
  }

  Prometheus prometheus;
  TrialReconciler reconciler;
  RunningJobs running;
};

// How far the trainings of ElasticHorovodJobs are.
struct ProfilerController {
  ProfilerController(const Shared& with, kube::Registry& metrics)
      : progress(with.client, {*with.jobs, with.pods, with.profiles}, with.account, with.events, with.clock, with.log) {
    progress.FeedQueue(with.Run(progress, "progress", 4));
    AddProgressMetrics(metrics, progress);
  }

  ProgressWatch progress;
};

// What jobs use.
struct UsageController {
  UsageController(const Shared& with, ProfileStore& store, kube::Registry& metrics)
      : prometheus(with.to_prometheus, with.clock, {with.options.usage_prometheus}),
        watch(with.client, {*with.jobs, with.pods, with.nodes, *with.profiles}, store, prometheus,
              {with.options.usage_prometheus, with.options.usage_selector, with.options.namespaces,
               with.options.owner_kinds, with.options.alnair_annotations},
              with.clock, with.log) {
    watch.FeedQueue(with.Run(watch, "usage", 2));
    AddUsageMetrics(metrics, watch);
  }

  Prometheus prometheus;
  UsageWatch watch;
};

// GpuQueues and NodePools. Where their CRDs are not installed yet, there are none.
struct QueueController {
  QueueController(const Shared& with, kube::Registry& metrics)
      : reconciler(with.client,
                   {with.manager.AddInformer(KindOf<api::GpuQueue>(), Optional({})),
                    with.manager.AddInformer(KindOf<api::NodePool>(), Optional({})),
                    with.manager.AddInformer(KindOf<kube::Namespace>(), Optional({})), with.jobs,
                    [far = with.far_pods, is_whole = with.options.namespaces.empty()] {
                      return is_whole || (far && far->HasList());
                    }},
                   with.account, with.events, with.clock, with.log, metrics) {
    reconciler.FeedQueue(with.Run(reconciler, "gpuqueue", 1));
  }

  QueueReconciler reconciler;
};

// PodGroups of one API group.
struct GangController {
  GangController(const Shared& with, kube::Informer& groups, const char* name, GangPeers peers)
      : reconciler(with.client, groups.kind(), groups, with.pods, with.account, peers, with.events, with.clock,
                   with.log) {
    reconciler.FeedQueue(with.Run(reconciler, name, with.options.reconcile_threads));
  }

  GangReconciler reconciler;
};

// The leases of the scheduler and of scheduler-plugins: they tell gangs whether those run, and since when.
struct PeerLeases {
  PeerLeases(const std::vector<std::string>& namespaces, kube::Client& client, const kube::Clock& clock,
             const kube::Log& its_log)
      : log(its_log),
        scheduler(client, namespaces, kSchedulerLease, clock, log),
        scheduler_plugins(client, namespaces, kSchedulerPluginsLease, clock, log) {}

  void Start(const std::stop_token& stop) {
    const kube::Result<bool> found = scheduler.Start(stop);
    if (!found || !*found) {
      log.Info("cannot see the scheduler's lease: nominations are not renewed when the scheduler restarts",
               {{"lease", kSchedulerLease}, {"reason", found ? "there is none" : found.error().message()}});
    }
    if (const kube::Result<bool> plugins = scheduler_plugins.Start(stop); !plugins) {
      log.Info("cannot see whether controllers of scheduler-plugins run",
               {{"lease", kSchedulerPluginsLease}, {"reason", plugins.error().message()}});
    }
  }
  void Stop() {
    scheduler.Stop();
    scheduler_plugins.Stop();
  }

  const kube::Log& log;
  LeaseWatch scheduler, scheduler_plugins;
};

// Finds out whether nominations are honoured here.
struct ProbeController {
  ProbeController(const Shared& with, LeaseWatch& scheduler)
      : account(with.account),
        log(with.log),
        probe(
            with.client, with.options.own_namespace, with.nodes, [this](const ProbeVerdict& verdict) { Note(verdict); },
            with.clock) {
    probe.FeedQueue(with.Run(probe, "nomination-probe", 1), scheduler);
  }

  void Note(const ProbeVerdict& verdict) {
    if (verdict.honoured != Honoured::kUnknown) account.SetNominationsHonoured(verdict.honoured == Honoured::kYes);
    if (std::exchange(last, verdict.honoured) == verdict.honoured) return;
    if (verdict.honoured == Honoured::kUnknown) {
      return log.Info("cannot find out whether nominations are honoured here", {{"reason", verdict.why}});
    }
    if (verdict.honoured == Honoured::kYes)
      return log.Info("nominations are honoured here", {{"scheduler", verdict.why}});
    log.Warn("nominations are not honoured here: members of gangs are pinned to their nodes instead",
             {{"reason", verdict.why}});
  }

  ClusterAccount& account;
  const kube::Log& log;
  NominationProbe probe;
  std::optional<Honoured> last;  // The last verdict that was logged.
};

}  // namespace

struct App::Impl {
  Impl(const Options& options, kube::Client& client, kube::LeaderElector* its_elector, const kube::Clock& clock,
       const kube::Log& log, kube::Registry& metrics, const std::string& instance,
       const Prometheus::Connect& to_prometheus)
      : elector(its_elector),
        gate(client, its_elector),
        manager(client, clock, log, metrics),
        events(client, clock, log, {kReportingController, instance}, &metrics),
        pods(manager.AddInformer(KindOf<kube::Pod>(), Everything(options))),
        nodes(manager.AddInformer(KindOf<kube::Node>())),
        volumes(manager.AddInformer(KindOf<kube::PersistentVolumeClaim>(), Optional(Everything(options))),
                manager.AddInformer(KindOf<kube::PersistentVolume>(), Optional({})),
                manager.AddInformer(KindOf<kube::StorageClass>(), Optional({}))),
        devices({manager.AddInformer(KindOf<kube::ResourceClaim>(), Optional(Everything(options))),
                 manager.AddInformer(KindOf<kube::ResourceClaimTemplate>(), Optional(Everything(options))),
                 manager.AddInformer(KindOf<kube::DeviceClass>(), Optional({})),
                 manager.AddInformer(KindOf<kube::ResourceSlice>(), Optional({})), UnhealthyGpusFor(options)},
                log),
        account(nodes, pods, clock, options.nominations, &volumes, &devices, &metrics) {
    account.SetResizeSeconds(options.resize_seconds);
    Shared shared{options, client, manager, events, clock, log, pods, nodes, account, to_prometheus};
    if (!options.namespaces.empty() && options.count_all_pods) {
      kube::Informer& far = manager.AddInformer(KindOf<kube::Pod>(), Optional(Elsewhere(options)));
      account.CountAlso(far);
      shared.far_pods = &far;
    }
    const bool has_trials = options.Runs("trial"), has_jobs = options.Runs("elastic");
    if (has_jobs || has_trials || options.RecordsUsage()) {
      shared.jobs = &manager.AddInformer(KindOf<api::ElasticHorovodJob>(), Everything(options));
    }
    // The first to be asked before planning: the account must know the queues when others say what they began.
    if (options.Runs("queues")) queues.emplace(shared, metrics);
    if (options.Runs("gang")) AddGangs(shared, metrics);
    const bool has_profiles = has_trials || options.RecordsUsage();
    if (has_profiles) {
      shared.profiles = &manager.AddInformer(KindOf<api::WorkloadProfile>());
      store.emplace(client, *shared.profiles, clock, options.profile_trust);
    } else if (options.Runs("extender")) {
      shared.profiles = &manager.AddInformer(KindOf<api::WorkloadProfile>(), Optional({}));
    }
    if (has_jobs) elastic.emplace(shared);
    if (has_trials) trials.emplace(shared, *store);
    if (store) profiles.emplace(shared, *store);
    if (has_jobs && options.Runs("profiler")) profiler.emplace(shared, metrics);
    if (options.RecordsUsage()) usage.emplace(shared, *store, metrics);
    if (options.Runs("extender")) extender.emplace(shared, metrics);
  }

  // Null: nobody asks for GPUs in the way in which they are taken out of use.
  kube::Informer* UnhealthyGpusFor(const Options& options) {
    if (!options.Runs("extender")) return nullptr;
    return &manager.AddInformer(KindOf<UnhealthyGpus>(), Optional({.namespaces = {kUnhealthyGpusNamespace}}));
  }

  void AddGangs(Shared& shared, kube::Registry& metrics) {
    const Options& options = shared.options;
    shared.groups = &manager.AddInformer(KindOf<api::PodGroup>(), Everything(options));
    kube::Informer& legacy = manager.AddInformer(KindOf<api::LegacyPodGroup>(), Optional(Everything(options)));
    peers.emplace(options.scheduler_lease_namespaces, shared.client, shared.clock, shared.log);
    gangs.emplace(shared, *shared.groups, "podgroup", GangPeers{&peers->scheduler, &peers->scheduler_plugins});
    // The controllers of scheduler-plugins know only the newer kind.
    legacy_gangs.emplace(shared, legacy, "podgroup-legacy", GangPeers{&peers->scheduler, nullptr});
    const bool nominates = options.nominations == Nominations::kAuto || options.nominations == Nominations::kAlways;
    if (nominates && !options.own_namespace.empty()) probe.emplace(shared, peers->scheduler);
    metrics.AddGaugeFunction("grus_gang_pins", "1 if members of gangs are pinned to nodes, not nominated, else 0.", {},
                             {}, [this] { return account.Pins() ? 1.0 : 0.0; });
  }

  kube::LeaderElector* const elector;
  LeaderGate gate;  // Before everything that writes.
  kube::Manager manager;
  kube::EventRecorder events;
  kube::Informer& pods;
  kube::Informer& nodes;
  PodVolumes volumes;
  PodDevices devices;
  ClusterAccount account;
  std::optional<QueueController> queues;
  std::optional<ElasticController> elastic;
  std::optional<ProfileStore> store;
  std::optional<TrialController> trials;
  std::optional<ProfileController> profiles;
  std::optional<ProfilerController> profiler;
  std::optional<UsageController> usage;
  std::optional<PeerLeases> peers;
  std::optional<ProbeController> probe;
  std::optional<GangController> gangs, legacy_gangs;
  std::optional<ExtenderController> extender;
};

std::vector<const kube::Kind*> App::Kinds(const Options& options) {
  std::vector<const kube::Kind*> kinds;
  if (options.Runs("elastic") || options.Runs("trial") || options.RecordsUsage()) {
    kinds.push_back(&KindOf<api::ElasticHorovodJob>());
  }
  if (options.Runs("trial")) kinds.insert(kinds.end(), {&KindOf<api::TrialJob>(), &KindOf<api::WorkloadProfile>()});
  if (options.RecordsUsage() && !options.Runs("trial")) kinds.push_back(&KindOf<api::WorkloadProfile>());
  if (options.Runs("gang")) kinds.push_back(&KindOf<api::PodGroup>());
  return kinds;
}

App::App(const Options& options, kube::Client& client, kube::LeaderElector* elector, const kube::Clock& clock,
         const kube::Log& log, kube::Registry& metrics, const std::string& instance, Prometheus::Connect to_prometheus)
    : impl_(std::make_unique<Impl>(options, client, elector, clock, log, metrics, instance, to_prometheus)) {}

App::~App() = default;

kube::Status App::Run(std::stop_token stop) {
  if (impl_->peers) impl_->peers->Start(stop);
  kube::Status ran = impl_->manager.Run(std::move(stop), impl_->elector);
  if (impl_->peers) impl_->peers->Stop();
  return ran;
}

Extender* App::extender() { return impl_->extender ? &impl_->extender->extender : nullptr; }

bool App::IsReady() const { return impl_->manager.IsReady(); }

}  // namespace grus

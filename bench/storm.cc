// SPDX-License-Identifier: Apache-2.0
#include "bench/storm.h"

#include <algorithm>
#include <cstdio>

#include "bench/measure.h"
#include "clientlib/model/core_v1.h"
#include "controllers/elastic/elastic_children.h"
#include "crds/types/pod_group.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;

bool IsReady(const kube::Pod& pod) { return kube::IsConditionTrue(pod.status.conditions, "Ready"); }

}  // namespace

Observer::Observer(kube::Client& client, const kube::Clock& clock, const kube::Log& log)
    : clock_(clock),
      pods_(client, KindOf<kube::Pod>(), {}, clock, log),
      jobs_(client, KindOf<api::ElasticHorovodJob>(), {}, clock, log) {
  pods_.AddHandler([this](const kube::Change& change, bool) { OnPod(change); });
  jobs_.AddHandler([this](const kube::Change& change, bool) { OnJob(change); });
}

bool Observer::Start() {
  pods_.Start();
  jobs_.Start();
  const kube::TimePoint until = clock_.Now() + std::chrono::seconds(60);
  return pods_.WaitForSync(until) && jobs_.WaitForSync(until);
}

void Observer::OnPod(const kube::Change& change) {
  const auto& pod = static_cast<const kube::Pod&>(change.Any());
  const std::string& ns = pod.metadata.ns;
  {
    std::lock_guard lock(mutex_);
    if (change.after) {
      all_[ns].insert(pod.metadata.name);
      if (pod.status.phase == "Running") running_[ns].insert(pod.metadata.name);
      const std::string job(pod.metadata.labels.Get(grus::kJobNameLabel));
      const bool is_worker = pod.metadata.labels.Get(grus::kRoleLabel) == "worker";
      if (is_worker && IsReady(pod) && ready_uids_.insert(pod.metadata.uid).second) {
        times_[ns + "/" + job].pod_ready.push_back(clock_.Now());
      }
    } else {
      all_[ns].erase(pod.metadata.name);
      running_[ns].erase(pod.metadata.name);
    }
  }
  changed_.NotifyAll();
}

void Observer::OnJob(const kube::Change& change) {
  if (!change.after) return;
  const auto& job = static_cast<const api::ElasticHorovodJob&>(*change.after);
  {
    std::lock_guard lock(mutex_);
    phases_[job.metadata.ns][job.metadata.name] = job.status.phase;
    std::vector<kube::TimePoint>& seen = times_[job.metadata.Key().ToString()].status_ready;
    while (static_cast<int>(seen.size()) < job.status.replicas.ready) seen.push_back(clock_.Now());
  }
  changed_.NotifyAll();
}

bool Observer::WaitForRunning(const std::string& ns, int count, kube::TimePoint until) {
  std::unique_lock lock(mutex_);
  while (static_cast<int>(running_[ns].size()) < count && clock_.Now() < until) {
    clock_.WaitUntil(lock, changed_, until);
  }
  return static_cast<int>(running_[ns].size()) >= count;
}

bool Observer::WaitForNoPods(const std::string& ns, kube::TimePoint until) {
  std::unique_lock lock(mutex_);
  while (!all_[ns].empty() && clock_.Now() < until) clock_.WaitUntil(lock, changed_, until);
  return all_[ns].empty();
}

bool Observer::WaitForPhase(const std::string& ns, const std::string& phase, int count, kube::TimePoint until) {
  std::unique_lock lock(mutex_);
  const auto reached = [&] {
    return std::count_if(phases_[ns].begin(), phases_[ns].end(),
                         [&](const auto& job) { return job.second == phase; }) >= count;
  };
  while (!reached() && clock_.Now() < until) clock_.WaitUntil(lock, changed_, until);
  return reached();
}

int Observer::Running(const std::string& ns) {
  std::lock_guard lock(mutex_);
  return static_cast<int>(running_[ns].size());
}

std::vector<double> Observer::StatusLags(const std::string& ns) {
  std::lock_guard lock(mutex_);
  std::vector<double> lags;
  for (const auto& [key, times] : times_) {
    if (key.rfind(ns + "/", 0) != 0) continue;
    for (std::size_t k = 0; k < std::min(times.pod_ready.size(), times.status_ready.size()); ++k) {
      lags.push_back(std::chrono::duration<double>(times.status_ready[k] - times.pod_ready[k]).count());
    }
  }
  std::sort(lags.begin(), lags.end());
  return lags;
}

api::ElasticHorovodJob MakeJob(const std::string& ns, int index, const StormOptions& options) {
  api::ElasticHorovodJob job;
  job.metadata.ns = ns;
  job.metadata.name = "storm-" + std::to_string(index);
  job.spec.launcher.image = "horovod/horovod-cpu:latest";
  job.spec.launcher.python_command = {"python", "/examples/train.py"};
  job.spec.workers.image = "horovod/horovod-cpu:latest";
  job.spec.workers.min_replicas = options.min_workers;
  job.spec.workers.max_replicas = options.workers;
  job.spec.workers.target_replicas = options.workers;
  if (options.is_gated) {
    job.spec.workers.pod_template["spec"]["schedulingGates"].Append(Json::MakeObject({{"name", api::kGangGate}}));
  }
  return job;
}

bool CreateJobs(kube::Client& client, const std::string& ns, const StormOptions& options) {
  return InParallel(options.jobs, options.threads, [&](int i) -> kube::Status {
    kube::Result<Json> json =
        kube::ParseJson(kube::EncodeObject(KindOf<api::ElasticHorovodJob>(), MakeJob(ns, i, options)));
    if (!json) return std::move(json).error();
    json->Erase("status");
    auto made = client.Create(KindOf<api::ElasticHorovodJob>(), ns, *json);
    if (!made) return std::move(made).error();
    return {};
  });
}

bool CreateNamespace(kube::Client& client, const std::string& ns) {
  const Json object =
      Json::MakeObject({{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Json::MakeObject({{"name", ns}})}});
  auto made = client.Create(KindOf<kube::Namespace>(), "", object);
  if (!made) std::fprintf(stderr, "create Namespace %s: %s\n", ns.c_str(), made.error().message().c_str());
  return made.ok();
}

void DeleteNamespace(kube::Client& client, const std::string& ns) {
  if (kube::Status gone = client.Delete(KindOf<kube::Namespace>(), {"", ns}); !gone) {
    std::fprintf(stderr, "delete Namespace %s: %s\n", ns.c_str(), gone.error().message().c_str());
  }
}

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0
#include "bench/storm.h"

#include <algorithm>
#include <cstdio>

#include "bench/measure.h"
#include "clientlib/model/core_v1.h"
#include "controllers/elastic/elastic_children.h"
#include "crds/types/pod_group.h"
#include "tests/kit/objects.h"
#include "tests/kit/pods.h"

namespace bench {

using kube::Json;
using kube::KindOf;

Observer::Observer(kube::Client& client, const kube::Clock& clock, const kube::Log& log)
    : clock_(clock), observer_(client, clock, log, {&KindOf<kube::Pod>(), &KindOf<api::ElasticHorovodJob>()}) {}

kube::Status Observer::Start() {
  return observer_.Start([this](const kube::Kind& kind, const kube::Change& change) {
    std::lock_guard lock(mutex_);
    if (&kind == &KindOf<kube::Pod>()) OnPod(change);
    else OnJob(change);
  });
}

void Observer::OnPod(const kube::Change& change) {
  const auto& pod = static_cast<const kube::Pod&>(change.Any());
  const std::string& ns = pod.metadata.ns;
  if (!change.after) {
    all_[ns].erase(pod.metadata.name);
    running_[ns].erase(pod.metadata.name);
    return;
  }
  all_[ns].insert(pod.metadata.name);
  if (pod.status.phase == "Running") running_[ns].insert(pod.metadata.name);
  const std::string job(pod.metadata.labels.Get(grus::kJobNameLabel));
  const bool is_worker = pod.metadata.labels.Get(grus::kRoleLabel) == "worker";
  if (is_worker && kit::IsReady(pod) && ready_uids_.insert(pod.metadata.uid).second) {
    times_[ns + "/" + job].pod_ready.push_back(clock_.Now());
  }
}

void Observer::OnJob(const kube::Change& change) {
  if (!change.after) return;
  const auto& job = static_cast<const api::ElasticHorovodJob&>(*change.after);
  phases_[job.metadata.ns][job.metadata.name] = job.status.phase;
  std::vector<kube::TimePoint>& seen = times_[job.metadata.Key().ToString()].status_ready;
  while (static_cast<int>(seen.size()) < job.status.replicas.ready) seen.push_back(clock_.Now());
}

bool Observer::Wait(const std::function<bool()>& reached, kube::TimePoint until) {
  return observer_.Await(
      [&] {
        std::lock_guard lock(mutex_);
        return reached();
      },
      until);
}

bool Observer::WaitForRunning(const std::string& ns, int count, kube::TimePoint until) {
  return Wait([&] { return static_cast<int>(running_[ns].size()) >= count; }, until);
}

bool Observer::WaitForNoPods(const std::string& ns, kube::TimePoint until) {
  return Wait([&] { return all_[ns].empty(); }, until);
}

bool Observer::WaitForPhase(const std::string& ns, const std::string& phase, int count, kube::TimePoint until) {
  const auto reached = [&] {
    return std::count_if(phases_[ns].begin(), phases_[ns].end(),
                         [&](const auto& job) { return job.second == phase; }) >= count;
  };
  return Wait(reached, until);
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
  auto made = client.Create(KindOf<kube::Namespace>(), "", kit::MakeObject("v1", "Namespace", ns));
  if (!made) std::fprintf(stderr, "create Namespace %s: %s\n", ns.c_str(), made.error().message().c_str());
  return made.ok();
}

void DeleteNamespace(kube::Client& client, const std::string& ns) {
  if (kube::Status gone = client.Delete(KindOf<kube::Namespace>(), {"", ns}); !gone) {
    std::fprintf(stderr, "delete Namespace %s: %s\n", ns.c_str(), gone.error().message().c_str());
  }
}

}  // namespace bench

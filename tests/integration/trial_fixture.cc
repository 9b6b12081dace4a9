// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/trial_fixture.h"

#include <algorithm>

#include "controllers/policy/resources.h"
#include "controllers/trial/trial_peers.h"
#include "tests/kit/local_cluster.h"

namespace grus::testing {
namespace {

using kube::Json;
using kube::KindOf;

std::string NowText() {
  std::string text = kube::ToMicroText(kube::Time{std::chrono::system_clock::now()});
  text.insert(text.size() - 1, "000");  // As the kubelet writes it.
  return text;
}

bool IsTrial(const kube::Pod& pod) { return !pod.metadata.Label(kTrialJobLabel).empty(); }

bool Prints(const kube::Pod& pod) {
  const bool trains = pod.metadata.Label(kRoleLabel) == "launcher" || IsTrial(pod);
  if (ReadPeerOf(pod.metadata)) return false;  // Only the first pod of a trial says how fast it is.
  return trains && pod.status.phase == "Running" && !pod.metadata.is_being_deleted();
}

int GpusOf(const kube::Pod& pod) {
  std::int64_t gpus = 0;
  for (const kube::Container& container : pod.spec.containers) {
    if (const auto* asked = kube::FindResource(container.resources.requests, kGpuResource)) gpus += asked->Value();
  }
  return static_cast<int>(gpus) * PodsOfTrial(pod);
}

}  // namespace

Trainer::Trainer(World& world, std::string ns, Line line)
    : world_(world), ns_(std::move(ns)), line_(std::move(line)), thread_([this](std::stop_token stop) { Run(stop); }) {}

Trainer::~Trainer() {
  thread_.request_stop();
  thread_.join();
}

void Trainer::Run(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  while (!stop.stop_requested()) {
    for (const auto& pod : world_.List<kube::Pod>(ns_)) {
      if (!Prints(*pod)) continue;
      Log& log = logs_[pod->metadata.uid];
      if (!log.file.is_open()) {
        const auto job = world_.Get<api::ElasticHorovodJob>(ns_, std::string(pod->metadata.Label(kJobNameLabel)));
        if (!job && !IsTrial(*pod)) continue;
        log.gpus =
            job ? job->spec.workers.target_replicas.value_or(1) * job->spec.workers.gpus_per_worker : GpusOf(*pod);
        log.file.open(kit::PodLogFile(ns_, pod->metadata.name), std::ios::app);
      }
      const std::string line = line_(log.gpus, log.number++);
      if (!line.empty()) log.file << NowText() << " stdout F " << line << std::endl;
    }
    std::unique_lock lock(mutex);
    stopped.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; });
  }
}

void TrialJobs::TearDown() {
  for (const auto& job : world().List<api::TrialJob>(ns())) Delete<api::TrialJob>(job->metadata.name);
  trainer_.reset();
  ElasticJob::TearDown();
}

void TrialJobs::CreateTrialJob(std::string_view spec, const std::string& name) {
  Json job = FromText(R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"TrialJob","metadata":{},"spec":{
      "workload":{},"cache":{"policy":"Off"}}})");
  job["metadata"]["name"] = name;
  job["metadata"]["namespace"] = ns();
  const Json overlay = FromText(spec);
  if (overlay.At({"workload"}) == nullptr) {
    job["spec"]["workload"]["template"]["spec"] = *Manifest(name, "{}").Find("spec");
  }
  kube::MergePatch(job["spec"], overlay);
  world().Create(KindOf<api::TrialJob>(), ns(), job);
}

void TrialJobs::Train(double per_gpu, int most_gpus) {
  Train([per_gpu, most_gpus](int gpus, int number) {
    // A little up and down, as real ones go.
    const double speed = per_gpu * std::min(gpus, most_gpus) * (1 + 0.01 * (number % 3 - 1));
    char text[80];
    std::snprintf(text, sizeof text, "step %d loss 2.31 total speed %.2f samples/s", number, speed);
    return std::string(text);
  });
}

bool TrialJobs::HasPhase(api::TrialJobPhase phase, const std::string& name) const {
  const auto job = Tune(name);
  return job && job->status.observed_generation == job->metadata.generation && job->status.phase == phase;
}

std::vector<std::string> TrialJobs::Trials(api::TrialPhase phase, const std::string& name) const {
  std::vector<std::string> trials;
  const auto job = Tune(name);
  if (!job) return trials;
  for (const api::Trial& trial : job->status.trials) {
    if (trial.phase != phase) continue;
    trials.push_back(std::to_string(trial.config.gpus) + " GPUs " +
                     std::string(EnumNames(trial.reason)[static_cast<std::size_t>(trial.reason)]));
  }
  return trials;
}

std::optional<api::Recommendation> TrialJobs::Knee(const std::string& name) const {
  const auto job = Tune(name);
  if (!job) return std::nullopt;
  for (const api::Recommendation& r : job->status.recommendation) {
    if (r.goal == api::Goal::kKnee) return r;
  }
  return std::nullopt;
}

bool TrialJobs::NothingIsLeft() const {
  const auto jobs = world().List<api::ElasticHorovodJob>(ns());
  const bool has_trial = std::any_of(jobs.begin(), jobs.end(),
                                     [](const auto& job) { return !job->metadata.Label(kTrialJobLabel).empty(); });
  return !has_trial && world().List<kube::Pod>(ns()).empty() && world().List<kube::Service>(ns()).empty() &&
         world().List<kube::StatefulSet>(ns()).empty() && world().List<kube::Job>(ns()).empty() &&
         world().List<api::PodGroup>(ns()).empty();
}

}  // namespace grus::testing

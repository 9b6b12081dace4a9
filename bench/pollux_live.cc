// SPDX-License-Identifier: Apache-2.0
#include "bench/pollux_live.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <numeric>
#include <utility>

#include "bench/manager_run.h"
#include "bench/sim/pollux_grus.h"
#include "clientlib/model/core_v1.h"
#include "controllers/cluster/owners.h"
#include "controllers/elastic/host_list.h"
#include "controllers/policy/decimal.h"
#include "crds/types/workload_profile.h"
#include "tests/kit/pods.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;

constexpr kube::Duration kLook = std::chrono::milliseconds(100);
constexpr char kNodePrefix[] = "node-";

double Average(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Jobs of one application with one batch size are one workload.
std::string ProfileOf(const grus::ReplayJob& job) {
  return job.application().name() + "-" + std::to_string(job.batch());
}

std::vector<grus::SpeedPoint> CurveOf(const grus::ReplayJob& job) {
  std::vector<grus::SpeedPoint> curve;
  constexpr int kNode = grus::kReplayGpusPerNode;
  for (int gpus = 1; gpus <= job.max_gpus(); gpus += gpus < kNode ? 1 : kNode) {
    curve.push_back({gpus, job.SpeedOn(grus::CompactPlacement(gpus)), 0, 0});
  }
  return curve;
}

std::string JobOf(const kube::Pod& pod) { return std::string(pod.metadata.Label(grus::kJobNameLabel)); }
bool IsLauncher(const kube::Pod& pod) { return pod.metadata.Label(grus::kRoleLabel) == "launcher"; }

// The number at the end of a node's name; nullopt: it is no node of the replay.
std::optional<int> IndexOf(const std::string& node) {
  if (!node.starts_with(kNodePrefix)) return std::nullopt;
  int index = 0;
  const char* const end = node.data() + node.size();
  const auto [at, error] = std::from_chars(node.data() + sizeof(kNodePrefix) - 1, end, index);
  return error == std::errc() && at == end ? std::optional(index) : std::nullopt;
}

template <typename T>
kube::Status Create(kube::Client& client, const std::string& ns, const T& object) {
  kube::Result<Json> json = kube::ParseJson(kube::EncodeObject(KindOf<T>(), object));
  if (!json) return std::move(json).error();
  json->Erase("status");
  auto made = client.Create(KindOf<T>(), ns, *json);
  if (!made) return std::move(made).error();
  return {};
}

api::WorkloadProfile MakeProfile(const grus::ReplayJob& job, const kube::Clock& clock) {
  api::WorkloadProfile profile;
  profile.metadata.name = profile.spec.fingerprint = ProfileOf(job);
  profile.spec.throughput_unit = api::ThroughputUnit::kStepsPerSecond;
  for (const grus::SpeedPoint& at : CurveOf(job)) {
    api::ProfilePoint& point = profile.spec.points.emplace_back();
    point.name = "g" + std::to_string(at.gpus);
    point.config.gpus = at.gpus;
    point.config.nodes = (at.gpus + grus::kReplayGpusPerNode - 1) / grus::kReplayGpusPerNode;
    const double steps = at.speed / job.batch();
    point.measured.throughput = grus::ToDecimal(steps, 9);
    point.measured.step_milliseconds = grus::ToDecimal(1000 / steps, 9);
    point.gpu_seconds = std::int64_t{60} * at.gpus;
    point.measured_by = "bench/replay";
    point.time = kube::Time{clock.WallNow()};
  }
  return profile;
}

}  // namespace

PolluxLive::PolluxLive(kube::Client& client, const kube::Clock& clock, const kube::Log& log,
                       std::vector<grus::ReplayJob> jobs, const LiveOptions& options)
    : client_(client),
      clock_(clock),
      options_(options),
      jobs_(std::move(jobs)),
      live_(jobs_.size()),
      observer_(client, clock, log,
                {&KindOf<kube::Pod>(), &KindOf<api::ElasticHorovodJob>(), &KindOf<kube::ConfigMap>()}) {}

double PolluxLive::TraceSeconds() const {
  return std::chrono::duration<double>(clock_.Now() - begun_).count() * options_.speedup;
}

kube::Status PolluxLive::MakeProfiles() {
  std::map<std::string, const grus::ReplayJob*> by_name;
  for (const grus::ReplayJob& job : jobs_) by_name.try_emplace(ProfileOf(job), &job);
  for (const auto& [name, job] : by_name) {
    if (kube::Status made = Create(client_, "", MakeProfile(*job, clock_)); !made) return made;
  }
  return {};
}

kube::Status PolluxLive::Submit(std::size_t index) {
  const grus::ReplayJob& replayed = jobs_[index];
  api::ElasticHorovodJob job;
  job.metadata.ns = ns_;
  job.metadata.name = replayed.name();
  job.spec.profile = ProfileOf(replayed);
  job.spec.launcher.image = job.spec.workers.image = "replay/" + replayed.application().name();
  job.spec.launcher.python_command = {"train"};
  job.spec.workers.min_replicas = 1;
  job.spec.workers.max_replicas = replayed.max_gpus();
  // Time runs so fast that a second is a minute; nothing has to leave the training here.
  job.spec.elastic.cooldown_seconds = 1;
  job.spec.elastic.shrink_grace_seconds = 0;
  live_[index].is_submitted = true;
  return Create(client_, ns_, job);
}

std::shared_ptr<const kube::Pod> PolluxLive::RunningLauncher(const std::string& job) const {
  for (auto& pod : observer_.Of(KindOf<kube::Pod>()).List<kube::Pod>()) {
    if (IsLauncher(*pod) && JobOf(*pod) == job && pod->status.phase == "Running") return pod;
  }
  return nullptr;
}

// Its training is done: the launcher ends as training does.
kube::Status PolluxLive::End(std::size_t index) {
  const auto launcher = RunningLauncher(jobs_[index].name());
  if (!launcher) return {};
  const Json patch = *kube::ParseJson(R"({"metadata":{"annotations":{"grus.test/outcome":"succeed"}}})");
  auto told = client_.Patch(KindOf<kube::Pod>(), launcher->metadata.Key(), kube::PatchType::kMerge, patch, {});
  if (!told) return std::move(told).error();
  live_[index].is_told_to_end = true;
  return {};
}

// The published workers that are ready, as the trainer sees them.
grus::GpuNodes PolluxLive::TrainsOn(std::size_t index) const {
  const std::string& name = jobs_[index].name();
  const auto config = observer_.Of(KindOf<kube::ConfigMap>()).Get<kube::ConfigMap>({ns_, name + "-hosts"});
  const auto list = config ? grus::ReadHostList(*config) : std::nullopt;
  if (!list || !RunningLauncher(name)) return {};
  grus::GpuNodes nodes;
  for (const grus::Host& host : list->hosts) {
    const auto pod = observer_.Of(KindOf<kube::Pod>()).Get<kube::Pod>({ns_, host.pod});
    if (!pod || !kit::IsReady(*pod) || pod->metadata.is_being_deleted()) continue;
    if (const auto node = IndexOf(std::string(pod->spec.node_name.view()))) nodes.push_back(*node);
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

void PolluxLive::NoteGrant(std::size_t index) {
  Live& live = live_[index];
  const auto job =
      observer_.Of(KindOf<api::ElasticHorovodJob>()).Get<api::ElasticHorovodJob>({ns_, jobs_[index].name()});
  if (!job) return;
  live.has_ended |= live.is_told_to_end && job->status.completion_time.has_value();
  const int granted = job->status.replicas.granted;
  if (granted == live.granted) return;
  if (granted > 0 && granted < job->status.replicas.min) Complain("a job was granted less than its minimum");
  live.is_start = live.granted == 0;
  if (live.is_start) waits_s_.push_back(TraceSeconds() - jobs_[index].submitted_s());
  live.granted_at = granted > 0 ? std::optional(clock_.Now()) : std::nullopt;
  live.granted = granted;
}

void PolluxLive::Move(std::size_t index) {
  grus::ReplayJob& job = jobs_[index];
  Live& live = live_[index];
  grus::GpuNodes nodes = TrainsOn(index);
  const auto trains_on = static_cast<int>(nodes.size());
  if (live.granted_at && trains_on == live.granted) {
    const double took_s = std::chrono::duration<double>(clock_.Now() - *live.granted_at).count() * options_.speedup;
    (live.is_start ? starts_s_ : resizes_s_).push_back(took_s + options_.standstill_s);
    live.granted_at.reset();
  }
  if (nodes != job.gpu_nodes()) job.Move(std::move(nodes), {options_.standstill_s, options_.standstill_s});
}

// Of what is planned and bound: each pod that could run holds its GPUs.
void PolluxLive::Check() {
  std::map<std::string, int> on_node;
  std::map<std::string, int> of_job;
  int all = 0, deleted = 0;
  std::string unbound;
  for (const auto& pod : observer_.Of(KindOf<kube::Pod>()).List<kube::Pod>()) {
    if (pod->metadata.ns != ns_ || IsLauncher(*pod) || pod->status.phase == "Succeeded" ||
        pod->status.phase == "Failed")
      continue;
    if (kit::IsBound(*pod)) ++on_node[std::string(pod->spec.node_name.view())];
    else unbound += " " + pod->metadata.name;
    ++of_job[JobOf(*pod)];
    ++all;
    deleted += pod->metadata.is_being_deleted() ? 1 : 0;
  }
  if (all > grus::kReplayNodes * grus::kReplayGpusPerNode) {
    std::string not_as_granted;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const int workers = of_job[jobs_[i].name()];
      if (workers == live_[i].granted && (workers == 0 || !live_[i].has_ended)) continue;
      not_as_granted += " " + jobs_[i].name() + (live_[i].has_ended ? " (ended)" : "") + " " + std::to_string(workers) +
                        " of " + std::to_string(live_[i].granted);
    }
    Complain("more workers than GPUs: " + std::to_string(all) + ", of which" + unbound + " without a node and " +
             std::to_string(deleted) + " being deleted; other than granted:" + not_as_granted);
  }
  for (const auto& [node, workers] : on_node) {
    if (workers > grus::kReplayGpusPerNode) Complain("a node had more workers than GPUs");
  }
}

void PolluxLive::Complain(const std::string& what) { ++breaches_[what]; }

kube::Result<LiveResult> PolluxLive::Run(const std::string& ns) {
  ns_ = ns;
  if (kube::Status started = observer_.Start([](const kube::Kind&, const kube::Change&) {}); !started) {
    return std::move(started).error();
  }
  if (kube::Status made = MakeProfiles(); !made) return std::move(made).error();
  begun_ = clock_.Now();
  double now_s = 0;
  while (!std::ranges::all_of(live_, &Live::has_ended)) {
    if (clock_.Now() > begun_ + options_.limit) return kube::Error(kube::ErrorCode::kTimeout, "jobs are left");
    LetPass(kLook, clock_);
    const double then_s = std::exchange(now_s, TraceSeconds());
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (live_[i].has_ended || jobs_[i].submitted_s() > now_s) continue;
      kube::Status done;
      if (!live_[i].is_submitted) done = Submit(i);
      jobs_[i].Train(then_s, now_s - then_s);
      NoteGrant(i);
      if (!jobs_[i].completed_s()) Move(i);
      else if (done && !live_[i].is_told_to_end) done = End(i);
      if (!done) return std::move(done).error();
    }
    Check();
  }
  LiveResult result{grus::Summarise(jobs_), Average(starts_s_), Average(waits_s_), Average(resizes_s_), {}};
  for (const auto& [what, times] : breaches_) result.breaches.push_back(what + ", " + std::to_string(times) + " times");
  return result;
}

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/part_writer.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "clientlib/base/wait.h"
#include "crds/types/part_memory.h"
#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr kube::Duration kPeriod = seconds(5), kBetweenLooks = seconds(1), kMayComeBack = seconds(30);
constexpr int kWritesOfALook = 10;
// The jitter keeps the agents of a large cluster apart when its API server comes back.
constexpr kube::BackoffPolicy kRetry{seconds(5), minutes(5), 2.0, 0.25};
constexpr kube::BackoffPolicy kLookRetry{seconds(5), seconds(10), 2.0, 0.25};  // The kubelet is near.

}  // namespace

PartWriter::PartWriter(kube::Client& client, const NodePods& pods, DeviceHolders& holders, const PartPlugins& plugins,
                       const kube::Clock& clock, const kube::Log& log, ClaimedParts claimed, PartWatch* watch)
    : client_(client),
      pods_(pods),
      holders_(holders),
      plugins_(plugins),
      clock_(clock),
      log_(log),
      claimed_(std::move(claimed)),
      watch_(watch),
      retry_(kRetry, clock.RandomSeed()),
      look_retry_(kLookRetry, clock.RandomSeed()) {}

void PartWriter::Wake() {
  const std::scoped_lock lock(mutex_);
  is_awake_ = true;
  woken_.NotifyAll();
}

void PartWriter::Run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { Wake(); });
  while (!stop.stop_requested()) {
    LookOnce(stop);
    if (!kube::WaitFor(clock_, kBetweenLooks, stop)) return;
    const kube::TimePoint until = clock_.Now() + kPeriod - kBetweenLooks;
    std::unique_lock lock(mutex_);
    while (!is_awake_ && clock_.Now() < until) clock_.WaitUntil(lock, woken_, until);
    is_awake_ = false;
  }
}

void PartWriter::LookOnce(const std::stop_token& stop) {
  const std::vector<SharedGpu> gpus = plugins_.gpus();
  if (clock_.Now() < next_look_ || !pods_.HasList() || gpus.empty()) return;
  if (watch_ != nullptr) watch_->Begin();
  const kube::Result<std::vector<HeldDevices>> held = holders_.List();
  if (!held) return Failed("list who holds devices", held.error(), look_retry_, next_look_);
  look_retry_.Reset();
  std::map<kube::ObjectKey, std::vector<HeldParts>> by_pod;
  for (HeldParts& part : PartsOf(*held, kPartResources, claimed_)) by_pod[part.pod].push_back(std::move(part));

  const std::vector<std::shared_ptr<const NodePod>> pods = pods_.List();
  for (const auto& pod : pods) {
    if (!pod->has_ended()) AddWhatPodSays(*pod, by_pod[pod->metadata.Key()]);
  }
  if (watch_ != nullptr) watch_->Note(*held, by_pod, pods, gpus);
  if (clock_.Now() < next_write_) return;

  std::set<std::string> there;
  int writes = 0;
  for (const auto& pod : pods) {
    there.insert(pod->metadata.uid);
    if (pod->has_ended()) continue;
    const std::vector<HeldParts>& parts = by_pod[pod->metadata.Key()];
    kube::Json annotations = Plan(*pod, parts, gpus);
    if (annotations.AsObject()->empty()) continue;
    if (writes++ == kWritesOfALook) return Wake();  // The rest comes next.
    if (!Write(*pod, std::move(annotations), stop)) return;
  }
  std::erase_if(known_, [&](const auto& one) { return !there.contains(one.first); });
  retry_.Reset();
}

void PartWriter::AddWhatPodSays(const NodePod& pod, std::vector<HeldParts>& parts) {
  const std::int64_t said_mib = api::MemoryMiBSaidBy(pod.metadata);
  // A container keeps what it was started with. An agent that knew nothing of enforcement may have given it its part.
  const bool was_not_enforced = pod.metadata.annotations.contains(api::kHeldGpusAnnotation) &&
                                pod.metadata.Annotation(api::kEnforcementAnnotation) == api::kNotEnforced;
  for (HeldParts& part : parts) {
    if (!was_not_enforced) part.enforcement = plugins_.WayOf(part);
    SetSaidMemory(said_mib, part);
    for (const NodeContainerSpec& spec : pod.spec.containers) {
      if (spec.name != part.container) continue;
      const auto sets_it = [](const NodeVariable& one) { return one.name == "NVIDIA_VISIBLE_DEVICES"; };
      const auto sets_mps = [](const NodeVariable& one) { return one.name.view().starts_with("CUDA_MPS_"); };
      part.overrides_gpu |= std::ranges::any_of(spec.env, sets_it);
      // Its own values win.
      const bool is_freed = part.enforcement == Enforcement::kMps && std::ranges::any_of(spec.env, sets_mps);
      if (is_freed) part.enforcement = Enforcement::kNone;
    }
    if (!part.overrides_gpu || std::exchange(known_[pod.metadata.uid].is_override_told, true)) continue;
    log_.Warn("a container sets NVIDIA_VISIBLE_DEVICES itself, and may see other GPUs than it was given",
              {{"pod", part.pod.ToString()}, {"container", part.container}});
  }
}

kube::Json PartWriter::Plan(const NodePod& pod, std::span<const HeldParts> parts, std::span<const SharedGpu> gpus) {
  kube::Json patch = kube::Json::MakeObject();
  Known& known = known_[pod.metadata.uid];
  if (clock_.Now() < known.not_before) return patch;
  if (!known.version.empty()) {
    if (kube::IsOlder(pod.metadata.resource_version, known.version)) return patch;
    known.version.clear();
  }
  if (!parts.empty() || (!AsksForParts(pod) && pod.spec.resource_claims.empty())) {
    known.empty_since.reset();
  } else {
    const kube::TimePoint now = clock_.Now();
    if (!known.empty_since) known.empty_since = now;
    if (now - *known.empty_since < kMayComeBack) return patch;
  }
  for (const auto& [key, text] : PodPartAnnotations(parts, gpus)) {
    const bool is_there = pod.metadata.annotations.contains(key);
    if (text.empty() ? is_there : !is_there || pod.metadata.Annotation(key) != text) {
      patch[key] = text.empty() ? kube::Json() : kube::Json(text);
    }
  }
  return patch;
}

bool PartWriter::Write(const NodePod& pod, kube::Json annotations, const std::stop_token& stop) {
  // The UID is a precondition: there may be a new pod of that name by now.
  const kube::Json patch = kube::Json::MakeObject(
      {{"metadata", kube::Json::MakeObject({{"uid", pod.metadata.uid}, {"annotations", std::move(annotations)}})}});
  const auto written = client_.Patch(kube::KindOf<NodePod>(), pod.metadata.Key(), kube::PatchType::kMerge, patch,
                                     {.metadata_only = true}, stop);
  if (written) {
    Known& known = known_[pod.metadata.uid];
    known.version = (*written)->metadata.resource_version;
    known.failures = 0;
    return true;
  }
  using kube::ErrorCode;
  const ErrorCode code = written.error().code();
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) return true;  // It is gone; the cache will say so.
  const bool is_of_all = code == ErrorCode::kUnavailable || code == ErrorCode::kTimeout ||
                         code == ErrorCode::kTooManyRequests || code == ErrorCode::kUnauthorized ||
                         code == ErrorCode::kCancelled;
  if (is_of_all) {
    Failed("patch pods", written.error(), retry_, next_write_);
    return false;
  }
  Known& known = known_[pod.metadata.uid];
  known.not_before = clock_.Now() + kube::ExponentialDelay(kRetry, known.failures++);
  // What forbids it may be about this pod alone, such as an admission policy.
  if (code == ErrorCode::kForbidden) {
    TellLack(written.error());
    return true;
  }
  // The first time it may be the UID: there is a new pod of that name, and the cache will say so.
  if (known.failures > 1 && news_.IsNews(written.error(), clock_.Now())) {
    log_.Warn("a pod cannot be told which part of a GPU it has, trying again",
              {{"pod", pod.metadata.Key().ToString()}, {"error", written.error().message()}});
  }
  return true;
}

void PartWriter::Failed(const char* what, const kube::Error& error, kube::Backoff& retry, kube::TimePoint& again) {
  if (error.code() == kube::ErrorCode::kCancelled) return;
  const kube::TimePoint now = clock_.Now();
  again = now + std::max(retry.Next(), error.retry_after().value_or(kube::Duration::zero()));
  if (!news_.IsNews(error, now)) return;
  log_.Warn("pods cannot be told which part of a GPU they have, trying again",
            {{"step", what}, {"error", error.message()}});
}

void PartWriter::TellLack(const kube::Error& error) {
  if (std::exchange(is_lack_told_, true)) return;
  log_.Warn("pods do not say which part of a GPU they have, no right to tell them: upgrade the chart or the role",
            {{"right", "patch pods"}, {"error", error.message()}});
}

}  // namespace grus

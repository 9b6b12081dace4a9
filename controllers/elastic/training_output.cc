// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/training_output.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "controllers/elastic/elastic_plan.h"
#include "controllers/policy/waited.h"

namespace grus {
namespace {

using std::chrono::seconds;

// A kubelet that does not answer must not keep a reconcile thread for longer.
constexpr kube::Duration kLogTimeout = seconds(3);
// A silent training may print again: look at it this often.
constexpr kube::Duration kSilentAgain = seconds(30);
// With a shorter limit, a training that prints once a minute would change its state with each look.
constexpr std::int32_t kShortestLimit = 60;
constexpr std::int64_t kMostBytes = 4096;  // The time stands at the beginning of the line.
// A new leader spreads its questions about running jobs over this time: each occupies a reconcile thread, and all at
// once would delay new jobs.
constexpr kube::Duration kSpread = seconds(60);

LauncherPod* FindRunning(View& view) {
  for (LauncherPod& pod : view.launcher_pods) {
    if (pod.trains() && pod.running_since) return &pod;
  }
  return nullptr;
}

bool IsCalledSilent(const View& view) {
  const kube::Condition* ready = view.ready();
  return ready != nullptr && ready->reason == ToString(Reason::kNoOutput);
}

// The wait before the first question. A training cannot have been silent for longer than it has run.
kube::Duration FirstAsk(const View& view, const LauncherPod& pod, kube::Duration limit) {
  const kube::Duration left = limit - Waited(view.now, *pod.running_since);
  if (left > kube::Duration::zero() || IsCalledSilent(view)) return left;
  const auto spread = static_cast<std::size_t>(std::min(kSpread, limit).count());
  return kube::Duration(std::hash<std::string>{}(pod.uid) % spread);
}

}  // namespace

kube::Result<std::optional<kube::Time>> TrainingOutput::TimeOfLastLine(const kube::ObjectKey& pod,
                                                                       std::stop_token stop) {
  const kube::PodLogOptions last_line{
      .container = "launcher", .timestamps = true, .tail_lines = 1, .limit_bytes = kMostBytes, .timeout = kLogTimeout};
  auto stream = client_.PodLog(pod, last_line, stop);
  if (!stream) return std::move(stream).error();
  const kube::TimePoint until = clock_.Now() + kLogTimeout;
  std::string line;
  for (;;) {
    auto bytes = (*stream)->Read(until, stop);
    if (!bytes) return std::move(bytes).error();
    if (bytes->empty()) break;
    line += *bytes;
  }
  const auto time = kube::ParseTime(line.substr(0, line.find(' ')));
  return time ? std::optional<kube::Time>(*time) : std::nullopt;
}

std::optional<kube::Duration> TrainingOutput::Look(View& view, std::stop_token stop) {
  const kube::ObjectKey job = view.job->metadata.Key();
  const std::int32_t wanted = view.job->spec.run_policy.progress_deadline_seconds;
  const kube::Duration limit = seconds(std::max(wanted, kShortestLimit));
  LauncherPod* pod = FindRunning(view);
  if (pod == nullptr || wanted <= 0) {
    Forget(job);
    return std::nullopt;
  }
  Record record = records_.With(job, pod->uid, [&](Record& kept) {
    if (kept.limit != limit) kept = {.limit = limit, .ask_at = clock_.Now() + FirstAsk(view, *pod, limit)};
    return kept;
  });
  if (record.ask_at <= clock_.Now()) {
    const auto last = TimeOfLastLine({job.ns, pod->name}, stop);
    const kube::Time spoke = last ? last->value_or(*pod->running_since) : view.now;  // An unreadable log is no silence.
    if (std::exchange(record.spoke, spoke) != spoke) {
      record.spoke_seen = clock_.Now();
      record.silent_since.reset();
    }
    // The clock of its node may be ahead of ours, and ours may be set back.
    const kube::Time since = std::min(spoke, view.now);
    const kube::Duration left = limit - std::max(Waited(view.now, since), clock_.Now() - record.spoke_seen);
    if (left <= kube::Duration::zero() && !record.silent_since) record.silent_since = since;
    record.ask_at = clock_.Now() + std::max(left, kSilentAgain);
    records_.With(job, pod->uid, [&](Record& kept) { kept = record; });
  }
  pod->silent_since = record.silent_since;
  return std::max<kube::Duration>(record.ask_at - clock_.Now(), seconds(1));
}

}  // namespace grus

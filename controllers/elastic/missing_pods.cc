// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/missing_pods.h"

#include <algorithm>
#include <chrono>

#include "clientlib/model/events_v1.h"
#include "controllers/policy/waited.h"

namespace grus {
namespace {

using std::chrono::seconds;

// Pods usually exist within a second; a container runs within a few, if its image is on the node.
constexpr kube::Duration kPatience = seconds(8);  // Also in a burst of jobs, in which all pods wait for seconds.
constexpr kube::Duration kStartPatience = seconds(5);
constexpr kube::Duration kAskAgain = seconds(10);
// No event tells that an admission check has changed. A quota that comes free wakes the job, but not before this.
constexpr kube::Duration kMakeAgain = seconds(5);
constexpr kube::Duration kHeardLate = std::chrono::minutes(1);  // A warning may precede our first look; clocks differ.

auto LastSeen(const kube::Event& event) {
  const kube::Time recorded = event.deprecated_last_timestamp.value_or(kube::Time{});
  return std::max(
      {recorded.value, event.event_time.value, event.series ? event.series->last_observed_time.value : recorded.value});
}

// A later step of the start shows that the problem of an earlier warning is over.
bool IsProgress(const kube::Event& event) {
  constexpr std::string_view kProgress[] = {"Scheduled", "SuccessfulAttachVolume", "Pulling", "Pulled", "Created",
                                            "Started"};
  return event.type == "Normal" &&
         std::find(std::begin(kProgress), std::end(kProgress), event.reason.view()) != std::end(kProgress);
}

// The last warning since `since`, unless its problem is over; empty: none.
std::string LastWarning(const std::vector<std::shared_ptr<kube::Object>>& events, const kube::Time& since) {
  const kube::Event* last = nullptr;
  for (const auto& object : events) {
    const auto& event = static_cast<const kube::Event&>(*object);
    const bool counts = event.type == "Warning" || IsProgress(event);
    const bool is_later = last == nullptr || LastSeen(event) > LastSeen(*last) ||
                          (LastSeen(event) == LastSeen(*last) && event.type == "Warning");
    if (counts && is_later && LastSeen(event) >= since.value) last = &event;
  }
  if (last == nullptr || last->type != "Warning") return {};
  return std::string(last->reason) + ": " + std::string(last->note);
}

// Bound, without a running container, and no status says why.
bool IsStarting(const Worker& w) { return w.is_on_node() && !w.is_ready && w.trouble.empty() && !w.has_started; }

bool IsLauncherStarting(const LauncherPod& pod) { return !pod.is_running && !pod.is_leaving() && pod.trouble.empty(); }

// The first pod that is still starting kStartPatience after `since`; null: none.
template <typename Pod>
Pod* FindStuck(std::vector<Pod>& pods, const kube::Time& now, bool (*is_starting)(const Pod&),
               std::optional<kube::Time> Pod::*since) {
  for (Pod& pod : pods) {
    if (is_starting(pod) && pod.*since && Waited(now, *(pod.*since)) >= kStartPatience) return &pod;
  }
  return nullptr;
}

// Anyone may write events about any pod, of 1.5 MB each: they are read into memory at once.
constexpr int kMostEvents = 20;

}  // namespace

std::optional<Refusal> MissingPods::Ask(const kube::ObjectKey& job, const std::string& uid, kube::Duration patience,
                                        const kube::Time& now, std::stop_token stop) {
  Record record = records_.With(job, uid, [&](Record& kept) {
    if (!kept.since) kept.since = now;
    return kept;
  });
  const bool is_early = Waited(now, *record.since) < patience;
  if (!is_early && (!record.asked || clock_.Now() - *record.asked >= kAskAgain)) {
    const kube::ListOptions options{.field_selector = "regarding.uid=" + uid, .limit = kMostEvents};
    const auto events = client_.List(kube::KindOf<kube::Event>(), job.ns, options, stop);
    record.asked = clock_.Now();
    // Older warnings of this workload are over. Without permission to list events, the job's message only says less.
    const kube::Time since{record.since->value - kHeardLate};
    record.text = events ? LastWarning(events->items, since) : std::string();
    records_.With(job, uid, [&](Record& kept) { kept = record; });
  }
  return record.text.empty() ? std::nullopt : std::optional(Refusal{record.text, *record.since});
}

std::optional<kube::Duration> MissingPods::NoteCreates(const View& view, const std::optional<kube::Error>& refusal) {
  if (!refusal) {
    refusals_.Forget(view.job->metadata.Key());
    return std::nullopt;
  }
  refusals_.With(view.job->metadata, [&](std::optional<RefusedCreates>& kept) {
    if (!kept) kept = RefusedCreates{{{}, view.now}, {}};
    kept->refusal.text = refusal->message();
    kept->last = clock_.Now();
  });
  return kMakeAgain;
}

void MissingPods::Forget(const kube::ObjectKey& job) {
  records_.Forget(job);
  refusals_.Forget(job);
}

std::optional<kube::Duration> MissingPods::Explain(View& view, const kube::Job* launcher, std::stop_token stop) {
  const kube::ObjectKey job = view.job->metadata.Key();
  const auto look = [&](const std::string& uid, kube::Duration patience) {
    return Ask(job, uid, patience, view.now, stop);
  };
  if (view.alive() >= view.granted()) refusals_.Forget(view.job->metadata.Key());
  if (auto refused = refusals_.Get(view.job->metadata)) {
    if (view.HoldingOn() > 0) {
      // A quota may refuse a replacement until the worker before it is gone: that time does not count.
      refused->refusal.since = view.now;
      refusals_.With(view.job->metadata, [&](auto& kept) { kept = refused; });
    }
    view.refused_workers = refused->refusal;
    const kube::Duration left = kMakeAgain - (clock_.Now() - refused->last);
    view.may_make_workers = left <= kube::Duration::zero();
    if (!view.may_make_workers) return left;
  }
  const bool lacks_launcher = launcher != nullptr && view.launcher == LauncherState::kActive &&
                              !view.is_launcher_ending && view.launcher_pods.empty();
  if (lacks_launcher) {
    view.refused_launcher = look(launcher->metadata.uid, kPatience);
  } else if (Worker* stuck = FindStuck(view.pods, view.now, IsStarting, &Worker::bound_since)) {
    if (const auto warning = look(stuck->uid, {})) stuck->trouble = warning->text;
  } else if (LauncherPod* pod = FindStuck(view.launcher_pods, view.now, IsLauncherStarting, &LauncherPod::created)) {
    if (const auto warning = look(pod->uid, {})) pod->trouble = warning->text;
  } else {
    records_.Forget(job);
    const bool is_starting = std::any_of(view.pods.begin(), view.pods.end(), IsStarting) ||
                             std::any_of(view.launcher_pods.begin(), view.launcher_pods.end(), IsLauncherStarting);
    return is_starting ? std::optional<kube::Duration>(kStartPatience) : std::nullopt;
  }
  kube::Duration left = kPatience;
  records_.IfKept(job, [&](const Record& kept) {
    left = kept.asked ? kAskAgain - (clock_.Now() - *kept.asked) : kPatience - Waited(view.now, *kept.since);
  });
  return std::max<kube::Duration>(left, seconds(1));
}

}  // namespace grus

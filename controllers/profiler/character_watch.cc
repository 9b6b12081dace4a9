// SPDX-License-Identifier: Apache-2.0
#include "controllers/profiler/character_watch.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "controllers/policy/waited.h"
#include "controllers/telemetry/character.h"

namespace grus {
namespace {

constexpr std::int64_t kShortestStep = 15, kMostSamples = 2000;

bool RunsToAnEnd(const JobRef& job) { return job.kind.view().ends_with("Job"); }

std::optional<std::int64_t> Rounded(const std::optional<double>& value) {
  return value ? std::optional<std::int64_t>(std::llround(*value)) : std::nullopt;
}

api::RunCharacter Describe(const Character& character, kube::Time now) {
  return {.kind = std::string(NameOf(character.kind)),
          .bottleneck = std::string(NameOf(character.bottleneck)),
          .cycle_seconds = Rounded(character.period_s),
          .iteration_seconds = Rounded(character.iteration_s),
          .predicted_max_gpu_memory_bytes = Rounded(character.predicted_peak_memory),
          .message = character.sentence,
          .time = {std::chrono::floor<std::chrono::seconds>(now.value)}};
}

}  // namespace

CharacterWatch::CharacterWatch(Prometheus& prometheus, std::string url, std::string selector, const kube::Clock& clock,
                               const kube::Log& log)
    : prometheus_(prometheus), url_(std::move(url)), selector_(std::move(selector)), clock_(clock), log_(log) {}

bool CharacterWatch::Choose(std::span<const JobNow> jobs) {
  std::lock_guard lock(mutex_);
  const kube::TimePoint now = clock_.Now();
  std::set<JobId> ids;
  struct Due {
    const JobNow* job;
    bool was_looked_at;
    kube::Duration late;
  };
  std::vector<Due> due;
  for (const JobNow& job : jobs) {
    ids.insert(job.ref.Id());
    if (job.is_over) continue;
    const auto known = known_.find(job.ref.Id());
    const bool was_looked_at = known != known_.end() && known->second.next;
    const kube::Duration late =
        was_looked_at ? now - *known->second.next : clock_.WallNow() - job.start.value - kFirstLook;
    if (late >= kube::Duration::zero()) due.push_back({&job, was_looked_at, late});
  }
  std::erase_if(known_, [&](const auto& known) { return !ids.contains(known.first); });
  chosen_.clear();
  if (due.empty()) return false;
  std::ranges::sort(due, {}, [](const Due& entry) {
    return std::tuple(entry.was_looked_at, -entry.job->use.gpus, entry.job->start);
  });
  // So that a stream of new jobs does not keep the others waiting for ever.
  const auto latest = std::ranges::max_element(due, {}, &Due::late);
  std::swap(due.front(), *latest);
  for (const Due& entry : due) {
    if (chosen_.size() < kLooksPerSweep) chosen_.push_back(entry.job->ref);
  }
  return true;
}

bool CharacterWatch::LookAtNext(const Find& find, std::stop_token stop) {
  std::optional<JobRef> ref;
  {
    std::lock_guard lock(mutex_);
    if (chosen_.empty()) return false;
    ref = std::move(chosen_.front());
    chosen_.pop_front();
  }
  const std::optional<JobOnNodes> job = find(*ref);
  const kube::Duration seen = job ? clock_.WallNow() - job->since.value : kube::Duration::zero();
  std::optional<kube::Result<std::optional<api::RunCharacter>>> answer;
  if (seen >= kFirstLook) answer = Ask(*ref, *job, stop);
  const bool is_asked = answer && answer->ok();

  std::lock_guard lock(mutex_);
  Known& known = known_[ref->Id()];
  known.next = clock_.Now() + (is_asked ? std::min(seen / 2, kLongestPause) : kFirstLook);
  if (is_asked) {
    known.character = **answer;
    is_failing_ = false;
  } else if (answer && !stop.stop_requested() && !std::exchange(is_failing_, true)) {
    log_.Warn("what a job does cannot be seen", {{"job", ref->ToString()}, {"error", answer->error().message()}});
  }
  return !chosen_.empty();
}

kube::Result<std::optional<api::RunCharacter>> CharacterWatch::Ask(const JobRef& ref, const JobOnNodes& job,
                                                                   std::stop_token stop) {
  const kube::Time now{clock_.WallNow()};
  const std::int64_t end = UnixSeconds(now);
  const std::int64_t longest = std::chrono::duration_cast<std::chrono::seconds>(kLongestSeries).count();
  const std::int64_t start = std::max(UnixSeconds(job.since), end - longest);
  const std::int64_t step = std::max(kShortestStep, (end - start) / kMostSamples);
  JobSeries series = EmptySeries(start, end, step);
  const auto take = [&](const QuerySample& sample) {
    AddMoment(sample.labels, sample.time, sample.value, job.cores_of_pod, series);
  };
  kube::Status asked =
      prometheus_.AskRange(url_, SeriesQuery(job.pods, selector_), {start, end, step}, take, std::move(stop));
  if (!asked) return std::move(asked).error();
  if (CountPresent(series.gpu_utilization) == 0) return std::optional<api::RunCharacter>();
  series.gpu_memory_limit = job.gpu_memory;
  series.gpus = std::max(job.gpus, 1);
  series.nodes = std::max(job.nodes, 1);
  series.is_batch = RunsToAnEnd(ref);
  return std::optional(Describe(CharacterOf(series), now));
}

std::optional<api::RunCharacter> CharacterWatch::Of(const JobId& job_id) const {
  std::lock_guard lock(mutex_);
  const auto known = known_.find(job_id);
  return known == known_.end() ? std::nullopt : known->second.character;
}

void CharacterWatch::Resume(const JobId& job_id, const api::RunCharacter& before) {
  std::lock_guard lock(mutex_);
  std::optional<api::RunCharacter>& character = known_[job_id].character;
  if (!character) character = before;
}

}  // namespace grus

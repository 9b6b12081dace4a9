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

bool RunsToAnEnd(const JobRef& job) { return job.kind.ends_with("Job"); }

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

void CharacterWatch::Look(const std::deque<JobRun>& runs, const Find& find, std::stop_token stop) {
  const auto age = [&](const JobRun& run) { return clock_.WallNow() - run.run.start.value; };
  std::set<std::string> ids;
  std::vector<const JobRun*> due;
  for (const JobRun& run : runs) {
    ids.insert(run.job.Id());
    const auto known = known_.find(run.job.Id());
    const kube::Duration next = known == known_.end() ? kFirstLook : known->second.next;
    if (!run.is_over() && age(run) >= next) due.push_back(&run);
  }
  std::erase_if(known_, [&](const auto& known) { return !ids.contains(known.first); });
  const auto count = std::min<std::size_t>(due.size(), kLooksPerSweep);
  // A job that was never looked at comes before one with more GPUs that was.
  std::ranges::partial_sort(due, due.begin() + static_cast<std::ptrdiff_t>(count), {}, [&](const JobRun* run) {
    return std::tuple(known_.contains(run->job.Id()), -run->run.gpus, run->run.start);
  });
  for (std::size_t i = 0; i < count && !stop.stop_requested(); ++i) {
    const JobRun& run = *due[i];
    const std::optional<JobOnNodes> job = find(run.job);
    Known& known = known_[run.job.Id()];
    known.next = age(run) + age(run) / 2;
    if (job) LookAt(run, *job, known, stop);
  }
}

void CharacterWatch::LookAt(const JobRun& run, const JobOnNodes& job, Known& known, std::stop_token stop) {
  const kube::Time now{clock_.WallNow()};
  const std::int64_t end = UnixSeconds(now);
  const std::int64_t start = std::max(UnixSeconds(run.run.start),
                                      end - std::chrono::duration_cast<std::chrono::seconds>(kLongestLook).count());
  const std::int64_t step = std::max(kShortestStep, (end - start) / kMostSamples);
  JobSeries series = EmptySeries(start, end, step);
  const auto take = [&](const QuerySample& sample) {
    AddMoment(sample.labels, sample.time, sample.value, job.cores, series);
  };
  const kube::Status asked =
      prometheus_.AskRange(url_, SeriesQuery(job.pods, selector_), {start, end, step}, take, stop);
  if (!asked) {
    if (!stop.stop_requested() && !std::exchange(is_failing_, true)) {
      log_.Warn("what a job is cannot be seen", {{"job", run.job.ToString()}, {"error", asked.error().message()}});
    }
    return;
  }
  is_failing_ = false;
  if (CountPresent(series.gpu_utilization) == 0) return;  // No source knows its GPUs.
  series.gpu_memory_limit = job.gpu_memory;
  series.gpus = std::max(run.run.gpus, 1);
  series.nodes = std::max(job.nodes, 1);
  series.is_batch = RunsToAnEnd(run.job);
  known.character = Describe(CharacterOf(series), now);
}

std::optional<api::RunCharacter> CharacterWatch::Of(const std::string& job_id) const {
  const auto known = known_.find(job_id);
  return known == known_.end() ? std::nullopt : known->second.character;
}

void CharacterWatch::Resume(const std::string& job_id, const api::RunCharacter& before) {
  std::optional<api::RunCharacter>& character = known_[job_id].character;
  if (!character) character = before;
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/usage_truth.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "tests/campaign/app_workload.h"

namespace grus::testing {
namespace {

constexpr char kLoad[] = "load-";

int NumberAt(const std::string& text, std::size_t at) {
  int number = 0;
  if (at < text.size()) std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

int GpusIn(const Json& pod) {
  int gpus = 0;
  for (const Json& container : kube::testing::ItemsAt(pod, {"spec", "containers"})) {
    gpus += NumberAt(Text(container, {"resources", "limits", "nvidia.com/gpu"}), 0);
  }
  return gpus;
}

int LoadIn(const Json& pod) {
  const std::string image = Text(kube::testing::ItemsAt(pod, {"spec", "containers"}).front(), {"image"});
  const std::size_t at = image.find(kLoad);
  return at == std::string::npos ? 50 : NumberAt(image, at + sizeof kLoad - 1);
}

// A number that looks drawn, and is the same each time.
std::uint64_t Mixed(const std::string& name, std::int64_t scrape) {
  std::uint64_t mixed = 14695981039346656037U ^ static_cast<std::uint64_t>(scrape);
  for (const char c : name) mixed = (mixed ^ static_cast<unsigned char>(c)) * 1099511628211U;
  mixed ^= mixed >> 29;
  mixed *= 0xbf58476d1ce4e5b9U;
  return mixed ^ (mixed >> 32);
}

bool Runs(const std::shared_ptr<const Json>& pod) { return pod && Text(*pod, {"status", "phase"}) == "Running"; }

}  // namespace

PodSample UsageTruth::Pod::At(std::int64_t scrape) const {
  const std::uint64_t drawn = Mixed(key.name, scrape);
  return {.utilization = load - kSpread + static_cast<int>(drawn % (2 * kSpread + 1)),
          .memory_mib = load * 100 + static_cast<std::int64_t>(drawn % kMemorySpread),
          .cores = load / 10.0,
          .network = load * 1e6,
          .disk = load * 1e5,
          .working_set = load * std::int64_t{10'000'000}};
}

UsageTruth::UsageTruth(kube::testing::World& world) : simulation_(world.simulation) {
  world.server.AddObserver([this](const kube::testing::ServerChange& change) { Note(change); });
}

void UsageTruth::Note(const kube::testing::ServerChange& change) {
  if (change.resource != "pods") return;
  const Json& object = change.after ? *change.after : *change.before;
  const std::string uid = Text(object, {"metadata", "uid"});
  const auto known = std::ranges::find(pods_, uid, &Pod::uid);
  if (known == pods_.end()) {
    const int gpus = GpusIn(object);
    if (!Runs(change.after) || gpus == 0) return;
    const Json* owner = kube::testing::ControllerOf(object);
    pods_.push_back({.key = kube::testing::KeyOf(object),
                     .uid = uid,
                     .job_uid = owner ? Text(*owner, {"uid"}) : uid,
                     .gpus = gpus,
                     .load = LoadIn(object),
                     .began = simulation_.Now(),
                     .started = Must(kube::ParseTime(Text(object, {"status", "startTime"})))});
  } else if (!known->gone && !Runs(change.after)) {
    known->gone = simulation_.Now();
    known->ended = kube::Time{simulation_.WallNow()};
  }
}

std::pair<std::int64_t, std::int64_t> UsageTruth::ScrapesOf(const Pod& pod) const {
  const std::int64_t before = ScrapeAt(pod.began), last = ScrapeAt(pod.gone.value_or(simulation_.Now()));
  return {before + 1, pod.gone && TimeOf(last) == *pod.gone ? last - 1 : last};
}

std::vector<std::string> UsageTruth::Jobs() const {
  std::set<std::string> uids;
  for (const Pod& pod : pods_) uids.insert(pod.job_uid);
  return {uids.begin(), uids.end()};
}

std::optional<UsageTruth::Job> UsageTruth::Find(const std::string& job_uid) const {
  std::optional<Job> job;
  std::map<kube::Time, std::pair<int, int>> changes;
  bool runs = false;
  const kube::Time now{simulation_.WallNow()};
  for (const Pod& pod : pods_) {
    if (pod.job_uid != job_uid) continue;
    if (!job) job = Job{.start = pod.started, .load = pod.load};
    job->start = std::min(job->start, pod.started);
    const kube::Time until = pod.ended.value_or(now);
    job->end = std::max(job->end.value_or(until), until);
    runs |= !pod.gone;
    job->gpu_seconds += pod.gpus * std::chrono::duration<double>(until.value - pod.started.value).count();
    changes[pod.started].first += pod.gpus;
    ++changes[pod.started].second;
    changes[until].first -= pod.gpus;
    --changes[until].second;
    const auto [first, last] = ScrapesOf(pod);
    for (std::int64_t scrape = first; scrape <= last; ++scrape) {
      const PodSample sample = pod.At(scrape);
      job->most_utilization = std::max(job->most_utilization, sample.utilization);
      job->most_memory_mib = std::max(job->most_memory_mib, sample.memory_mib);
    }
  }
  if (!job) return job;
  int gpus = 0, pods = 0;
  for (const auto& [time, change] : changes) {
    job->gpus = std::max(job->gpus, gpus += change.first);
    job->pods = std::max(job->pods, pods += change.second);
  }
  if (runs) job->end = std::nullopt;
  return job;
}

}  // namespace grus::testing

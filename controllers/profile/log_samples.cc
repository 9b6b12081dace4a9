// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/log_samples.h"

#include <algorithm>
#include <cassert>

namespace grus {
namespace {

constexpr char kLauncherContainer[] = "launcher";

SpeedReader MakeReader(const kube::Clock& clock) {
  SpeedReaderOptions options;
  options.started = clock.WallNow();
  options.slice = std::chrono::hours(24 * 365);  // The caller decides when it is over.
  kube::Result<SpeedReader> reader = SpeedReader::Make(options);
  assert(reader);  // Make() fails only for bad patterns.
  return *std::move(reader);
}

}  // namespace

bool LogSamples::Begin(const kube::ObjectKey& job, const kube::ObjectKey& launcher, const std::string& launcher_uid) {
  {
    std::lock_guard lock(mutex_);
    if (samples_.size() >= kMostSamples) {
      if (std::ranges::find(line_, job) == line_.end()) line_.push_back(job);
      return false;
    }
    std::erase(line_, job);
    samples_.try_emplace(job);  // Takes the turn.
  }
  auto sample = std::make_unique<SpeedSource>(clock_, MakeReader(clock_));
  kube::LogFollowerOptions options;
  options.pod = launcher;
  options.uid = launcher_uid;
  options.container = kLauncherContainer;
  options.tail_lines = 0;  // Not by time: the node's clock may differ from ours.
  sample->Follow(client_, std::move(options));
  std::lock_guard lock(mutex_);
  samples_[job] = std::move(sample);
  return true;
}

const SpeedSource* LogSamples::Find(const kube::ObjectKey& job) const {
  std::lock_guard lock(mutex_);
  const auto found = samples_.find(job);
  return found == samples_.end() ? nullptr : found->second.get();
}

void LogSamples::End(const kube::ObjectKey& job) {
  std::unique_ptr<SpeedSource> ended;  // Destroyed without the lock, since that waits for its thread.
  std::lock_guard lock(mutex_);
  std::erase(line_, job);
  const auto found = samples_.find(job);
  if (found == samples_.end()) return;
  ended = std::move(found->second);
  samples_.erase(found);
}

std::optional<kube::ObjectKey> LogSamples::Next() const {
  std::lock_guard lock(mutex_);
  return samples_.size() < kMostSamples && !line_.empty() ? std::optional(line_.front()) : std::nullopt;
}

}  // namespace grus

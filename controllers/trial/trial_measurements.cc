// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_measurements.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace grus {
namespace {

// A stream that is quiet for this long may be dead, and the training may have ended.
constexpr kube::Duration kLookAfter = std::chrono::seconds(15);

}  // namespace

TrialMeasurements::TrialMeasurements(kube::Client& client, const kube::Clock& clock, Wake wake)
    : client_(client), clock_(clock), wake_(std::move(wake)) {}

TrialMeasurements::~TrialMeasurements() {
  for (auto& [job, sources] : sources_) {
    for (auto& [trial, source] : sources) source.speed->RequestStop();
  }
}

void TrialMeasurements::Measure(const kube::ObjectKey& trial_job, const std::vector<MeasureTarget>& targets) {
  std::vector<std::shared_ptr<SpeedSource>> ended;  // Joined without the lock: their threads may be in wake_().
  {
    std::lock_guard lock(mutex_);
    Sources before;
    if (const auto found = sources_.find(trial_job); found != sources_.end()) before.swap(found->second);
    std::erase_if(busy_, [&](const auto& entry) { return entry.second <= clock_.Now(); });
    for (const auto& [trial, source] : before) {
      const kube::TimePoint until = source.speed->busy_until();
      if (until > clock_.Now()) busy_.insert_or_assign(source.pod, until);
    }
    Sources after;
    for (const MeasureTarget& target : targets) {
      const auto found = before.find(target.trial);
      if (found != before.end() && found->second.pod_uid == target.pod_uid) {
        after.insert(before.extract(found));
        continue;
      }
      if (count_ >= kMost) continue;
      kube::Result<SpeedReader> reader = SpeedReader::Make(target.options);
      if (!reader) continue;  // Patterns are checked before any trial starts.
      Source source{target.pod, target.pod_uid, nullptr};
      source.speed = std::make_shared<SpeedSource>(clock_, *std::move(reader), [this, trial_job] { wake_(trial_job); });
      if (target.follows_log) {
        kube::LogFollowerOptions options;
        options.pod = target.pod;
        options.uid = target.pod_uid;
        options.container = target.container;
        options.look_after = kLookAfter;
        // The Retry-After may be for an earlier pod of that name.
        if (const auto busy = busy_.find(target.pod); busy != busy_.end()) options.not_before = busy->second;
        source.speed->Follow(client_, std::move(options));
      }
      after.emplace(target.trial, std::move(source));
      ++count_;
    }
    for (auto& [trial, source] : before) {
      source.speed->RequestStop();
      ended.push_back(std::move(source.speed));
      --count_;
    }
    if (after.empty()) sources_.erase(trial_job);
    else sources_[trial_job] = std::move(after);
  }
}

std::map<std::string, SpeedObservation> TrialMeasurements::Look(const kube::ObjectKey& trial_job) const {
  Sources sources;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = sources_.find(trial_job); found != sources_.end()) sources = found->second;
  }
  std::map<std::string, SpeedObservation> seen;
  for (const auto& [trial, source] : sources) seen.emplace(trial, source.speed->Look());
  return seen;
}

std::shared_ptr<SpeedSource> TrialMeasurements::Find(const kube::ObjectKey& trial_job, const std::string& trial) const {
  std::lock_guard lock(mutex_);
  const auto job = sources_.find(trial_job);
  if (job == sources_.end()) return nullptr;
  const auto found = job->second.find(trial);
  return found != job->second.end() ? found->second.speed : nullptr;
}

bool TrialMeasurements::IsLogAwaited(const kube::ObjectKey& trial_job, const std::string& trial) const {
  if (const auto source = Find(trial_job, trial)) return source->IsLogAwaited();
  std::lock_guard lock(mutex_);
  return count_ < kMost;
}

bool TrialMeasurements::HasLogEnded(const kube::ObjectKey& trial_job, const std::string& trial) const {
  const auto source = Find(trial_job, trial);
  return source && source->HasEnded();
}

void TrialMeasurements::AddLine(const kube::ObjectKey& trial_job, const std::string& trial, const std::string& text,
                                std::optional<kube::Duration> same_is_news) {
  if (const auto source = Find(trial_job, trial)) source->AddLine(text, same_is_news);
}

}  // namespace grus

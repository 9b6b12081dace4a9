// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/trial_measurements.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace grus {
namespace {

constexpr kube::Duration kLookEvery = std::chrono::seconds(1);  // While bytes come: each look reads all samples.
// A stream that is quiet for this long may be dead, and the training may have ended.
constexpr kube::Duration kLookAfter = std::chrono::seconds(15);
constexpr kube::Duration kLogWait = std::chrono::seconds(30);
// If the log could not be read: the follower may pause for a minute before it tries again.
constexpr kube::Duration kLogWaitAfterFailure = std::chrono::seconds(90);

}  // namespace

class TrialMeasurements::Source final : public kube::LogSink {
 public:
  Source(const kube::Clock& clock, const MeasureTarget& target, SpeedReader reader, std::function<void()> wake)
      : pod_(target.pod), pod_uid_(target.pod_uid), clock_(clock), wake_(std::move(wake)), reader_(std::move(reader)) {}

  void Follow(kube::Client& client, const MeasureTarget& target, kube::TimePoint not_before) {
    kube::LogFollowerOptions options;
    options.pod = target.pod;
    options.not_before = not_before;
    options.uid = pod_uid_;
    options.container = target.container;
    options.look_after = kLookAfter;
    follower_ = std::make_unique<kube::LogFollower>(client, std::move(options), clock_, *this);
    follower_->Start();
  }
  void RequestStop() {
    if (follower_) follower_->RequestStop();
  }

  void OnStart(std::optional<kube::Time>) override {
    std::lock_guard lock(mutex_);
    reader_.Resume();
    // A stream that replaces a dead one is not news; the lines it brings are.
    if (!std::exchange(has_started_, true)) news_ = clock_.Now();
  }
  void OnBytes(std::string_view bytes) override {
    {
      std::lock_guard lock(mutex_);
      reader_.Add(bytes);
      news_ = clock_.Now();
      has_failed_ = false;
      if (last_look_ && clock_.Now() - *last_look_ < kLookEvery) return;
      last_look_ = clock_.Now();
      const SpeedState state = reader_.Observe(clock_.WallNow()).state;
      if (state == state_) return;
      state_ = state;
    }
    wake_();
  }
  void OnState(kube::LogState state, const std::string&) override {
    {
      std::lock_guard lock(mutex_);
      log_ = state;
      has_failed_ |= state == kube::LogState::kWaiting;
    }
    if (state == kube::LogState::kEnded) wake_();
  }

  void AddLine(const std::string& text, std::optional<kube::Duration> same_is_news) {
    std::lock_guard lock(mutex_);
    const kube::TimePoint now = clock_.Now();
    if (text == last_line_ && !(same_is_news && now - last_line_at_ >= *same_is_news)) return;
    last_line_ = text;
    last_line_at_ = now;
    // Use the monotonic clock: setting back the wall clock must not set back the measurement.
    const kube::WallTime at = began_wall_ + std::chrono::duration_cast<kube::WallTime::duration>(now - began_);
    reader_.Add(kube::ToMicroText(kube::Time{at}) + " " + text + "\n");
  }
  SpeedObservation Look() const {
    std::lock_guard lock(mutex_);
    return reader_.Observe(clock_.WallNow());
  }
  bool IsLogAwaited() const {
    std::lock_guard lock(mutex_);
    const bool is_open = log_ == kube::LogState::kWaiting || log_ == kube::LogState::kFollowing;
    return follower_ && is_open && clock_.Now() - news_ < (has_failed_ ? kLogWaitAfterFailure : kLogWait);
  }
  bool HasEnded() const {
    std::lock_guard lock(mutex_);
    return log_ == kube::LogState::kEnded;
  }
  const std::string& pod_uid() const { return pod_uid_; }
  const kube::ObjectKey& pod() const { return pod_; }
  kube::TimePoint busy_until() const { return follower_ ? follower_->busy_until() : kube::TimePoint{}; }

 private:
  const kube::ObjectKey pod_;
  const std::string pod_uid_;
  const kube::Clock& clock_;
  const std::function<void()> wake_;
  const kube::TimePoint began_ = clock_.Now();
  const kube::WallTime began_wall_ = clock_.WallNow();
  mutable std::mutex mutex_;  // Guards what follows.
  SpeedReader reader_;
  SpeedState state_ = SpeedState::kWaiting;
  std::optional<kube::TimePoint> last_look_;
  std::string last_line_;
  kube::LogState log_ = kube::LogState::kWaiting;
  bool has_started_ = false;       // A stream of its log has begun.
  bool has_failed_ = false;        // Since its last news, the log could not be read.
  kube::TimePoint news_ = began_;  // When the log last brought something.
  kube::TimePoint last_line_at_{};

  std::unique_ptr<kube::LogFollower> follower_;  // Last: its thread calls this object until it is destroyed.
};

TrialMeasurements::TrialMeasurements(kube::Client& client, const kube::Clock& clock, Wake wake)
    : client_(client), clock_(clock), wake_(std::move(wake)) {}

TrialMeasurements::~TrialMeasurements() {
  for (auto& [job, sources] : sources_) {
    for (auto& [trial, source] : sources) source->RequestStop();
  }
}

void TrialMeasurements::Measure(const kube::ObjectKey& trial_job, const std::vector<MeasureTarget>& targets) {
  std::vector<std::shared_ptr<Source>> ended;  // Joined without the lock: their threads may be in wake_().
  {
    std::lock_guard lock(mutex_);
    Sources before;
    if (const auto found = sources_.find(trial_job); found != sources_.end()) before.swap(found->second);
    std::erase_if(busy_, [&](const auto& entry) { return entry.second <= clock_.Now(); });
    for (const auto& [trial, source] : before) {
      if (source->busy_until() > clock_.Now()) busy_.insert_or_assign(source->pod(), source->busy_until());
    }
    Sources after;
    for (const MeasureTarget& target : targets) {
      const auto found = before.find(target.trial);
      if (found != before.end() && found->second->pod_uid() == target.pod_uid) {
        after.insert(before.extract(found));
        continue;
      }
      if (count_ >= kMost) continue;
      kube::Result<SpeedReader> reader = SpeedReader::Make(target.options);
      if (!reader) continue;  // Patterns are checked before any trial starts.
      auto source =
          std::make_shared<Source>(clock_, target, *std::move(reader), [this, trial_job] { wake_(trial_job); });
      if (target.follows_log) {
        // The Retry-After may be for an earlier pod of that name.
        const auto busy = busy_.find(target.pod);
        source->Follow(client_, target, busy != busy_.end() ? busy->second : kube::TimePoint{});
      }
      after.emplace(target.trial, std::move(source));
      ++count_;
    }
    for (auto& [trial, source] : before) {
      source->RequestStop();
      ended.push_back(std::move(source));
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
  for (const auto& [trial, source] : sources) seen.emplace(trial, source->Look());
  return seen;
}

std::shared_ptr<TrialMeasurements::Source> TrialMeasurements::Find(const kube::ObjectKey& trial_job,
                                                                   const std::string& trial) const {
  std::lock_guard lock(mutex_);
  const auto job = sources_.find(trial_job);
  if (job == sources_.end()) return nullptr;
  const auto found = job->second.find(trial);
  return found != job->second.end() ? found->second : nullptr;
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

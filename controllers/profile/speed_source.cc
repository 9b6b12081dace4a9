// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/speed_source.h"

#include <utility>

namespace grus {
namespace {

constexpr kube::Duration kLookEvery = std::chrono::seconds(1);  // While bytes come: each look reads all samples.
constexpr kube::Duration kLogWait = std::chrono::seconds(30);
// If the log could not be read: the follower may pause for a minute before it tries again.
constexpr kube::Duration kLogWaitAfterFailure = std::chrono::seconds(90);

}  // namespace

void SpeedSource::Follow(kube::Client& client, kube::LogFollowerOptions options) {
  follower_ = std::make_unique<kube::LogFollower>(client, std::move(options), clock_, *this);
  follower_->Start();
}

void SpeedSource::RequestStop() {
  if (follower_) follower_->RequestStop();
}

void SpeedSource::OnStart(std::optional<kube::Time>) {
  std::lock_guard lock(mutex_);
  reader_.Resume();
  // A stream that replaces a dead one is not news; the lines it brings are.
  if (!std::exchange(has_started_, true)) news_ = clock_.Now();
}

void SpeedSource::OnBytes(std::string_view bytes) {
  {
    std::lock_guard lock(mutex_);
    reader_.Add(bytes);
    news_ = clock_.Now();
    has_failed_ = false;
    if (!wake_ || (last_look_ && clock_.Now() - *last_look_ < kLookEvery)) return;
    last_look_ = clock_.Now();
    const SpeedState state = reader_.Observe(clock_.WallNow()).state;
    if (state == state_) return;
    state_ = state;
  }
  wake_();
}

void SpeedSource::OnState(kube::LogState state, const std::string& reason) {
  {
    std::lock_guard lock(mutex_);
    log_ = state;
    refusal_ = state == kube::LogState::kRefused ? reason : "";
    has_failed_ |= state == kube::LogState::kWaiting;
  }
  if (wake_ && state == kube::LogState::kEnded) wake_();
}

void SpeedSource::AddLine(const std::string& text, std::optional<kube::Duration> same_is_news) {
  std::lock_guard lock(mutex_);
  const kube::TimePoint now = clock_.Now();
  if (text == last_line_ && !(same_is_news && now - last_line_at_ >= *same_is_news)) return;
  last_line_ = text;
  last_line_at_ = now;
  // Use the monotonic clock: setting back the wall clock must not set back the measurement.
  const kube::WallTime at = began_wall_ + std::chrono::duration_cast<kube::WallTime::duration>(now - began_);
  reader_.Add(kube::ToMicroText(kube::Time{at}) + " " + text + "\n");
}

SpeedObservation SpeedSource::Look() const {
  std::lock_guard lock(mutex_);
  return reader_.Observe(clock_.WallNow());
}

bool SpeedSource::HasEnded() const {
  std::lock_guard lock(mutex_);
  return log_ == kube::LogState::kEnded;
}

std::string SpeedSource::Refusal() const {
  std::lock_guard lock(mutex_);
  return refusal_;
}

bool SpeedSource::IsLogAwaited() const {
  std::lock_guard lock(mutex_);
  const bool is_open = log_ == kube::LogState::kWaiting || log_ == kube::LogState::kFollowing;
  return follower_ && is_open && clock_.Now() - news_ < (has_failed_ ? kLogWaitAfterFailure : kLogWait);
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/log_sample.h"

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

kube::LogFollowerOptions Following(const kube::ObjectKey& launcher, const std::string& uid) {
  kube::LogFollowerOptions options;
  options.pod = launcher;
  options.uid = uid;
  options.container = kLauncherContainer;
  options.tail_lines = 0;  // Not by time: the node's clock may differ from ours.
  return options;
}

}  // namespace

LogSample::LogSample(kube::Client& client, const kube::Clock& clock, const kube::ObjectKey& launcher,
                     const std::string& uid)
    : clock_(clock), reader_(MakeReader(clock)), follower_(client, Following(launcher, uid), clock, *this) {
  follower_.Start();
}

LogSample::Seen LogSample::Look() const {
  std::lock_guard lock(mutex_);
  return {reader_.Observe(clock_.WallNow()), has_ended_, refusal_};
}

void LogSample::OnStart(std::optional<kube::Time>) {
  std::lock_guard lock(mutex_);
  reader_.Resume();
}

void LogSample::OnBytes(std::string_view bytes) {
  std::lock_guard lock(mutex_);
  reader_.Add(bytes);
}

void LogSample::OnState(kube::LogState state, const std::string& reason) {
  std::lock_guard lock(mutex_);
  has_ended_ = state == kube::LogState::kEnded;
  refusal_ = state == kube::LogState::kRefused ? reason : "";
}

}  // namespace grus

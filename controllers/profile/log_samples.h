// SPDX-License-Identifier: Apache-2.0
// The logs of running jobs that are being read: at most kMostSamples at a time. Other jobs wait in line.
//
// Thread-safe, for one pass over each job at a time.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "controllers/profile/speed_source.h"

namespace grus {

inline constexpr std::size_t kMostSamples = 4;

class LogSamples {
 public:
  LogSamples(kube::Client& client, const kube::Clock& clock) : client_(client), clock_(clock) {}

  // Starts to read what the launcher prints from now on: earlier lines of its log may be about another size. False: too
  // many others are being read, and `job` waits in line.
  bool Begin(const kube::ObjectKey& job, const kube::ObjectKey& launcher, const std::string& launcher_uid);
  // Null: the job's log is not being read. Valid until End().
  const SpeedSource* Find(const kube::ObjectKey& job) const;
  // Also takes `job` out of the line. Blocks until the thread that follows its log has ended.
  void End(const kube::ObjectKey& job);
  // The job whose turn it is; nullopt: nobody waits, or too many logs are being read.
  std::optional<kube::ObjectKey> Next() const;

 private:
  kube::Client& client_;
  const kube::Clock& clock_;
  mutable std::mutex mutex_;  // Guards what follows, not the samples themselves.
  std::map<kube::ObjectKey, std::unique_ptr<SpeedSource>> samples_;
  std::deque<kube::ObjectKey> line_;
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The control daemon of MPS for one GPU, nvidia-cuda-mps-control.
//
// It runs in a session of its own and goes on when the agent ends, since its end is that of all programs which it
// serves. The next agent finds it by the file FOLDER/daemon, with its PID and when it started, and keeps it. That file
// is not in the folder that containers get. Folders stay where they are: containers have them mounted.
//
// Each look takes a step and does not wait, but for the daemon's answer to a command, five seconds at most. A daemon
// that dies is started again, after one second to one minute. Time comes from `clock`. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clientlib/base/backoff.h"
#include "clientlib/base/clock.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/log.h"
#include "nodeagent/mps/mps_process.h"

namespace grus {

class MpsDaemon {
 public:
  // Finds the daemon that runs already. `folder`: of this GPU. Both last must outlive it.
  MpsDaemon(std::string program, std::string folder, std::string gpu, const kube::Clock& clock, const kube::Log& log);

  // It shall run, and let its clients have at most `memory_mib` of the GPU.
  void Keep(std::int64_t memory_mib);
  // It shall end: it is asked to, then told by SIGTERM, then by SIGKILL. Called until it does not run.
  void End();

  bool is_running() const { return process_.has_value(); }
  bool is_up() const { return is_up_; }  // It takes clients.
  static std::string PipesIn(const std::string& folder) { return folder + "/pipe"; }
  static std::string LogsIn(const std::string& folder) { return folder + "/log"; }

 private:
  enum class Ending { kNot, kAsked, kTerminated, kKilled };

  Variables Environment() const;
  kube::Status Command(const std::string& command) const;
  // Whether it has ended since the last look.
  bool HasGone();
  void Start();
  void TryUp(std::int64_t memory_mib);
  void StartLater(const kube::Error& why);
  std::optional<ProcessMark> ReadMark() const;
  kube::Status WriteMark() const;

  const std::string program_, folder_, gpu_;
  const kube::Clock& clock_;
  const kube::Log& log_;

  std::optional<ProcessMark> process_;
  bool is_adopted_ = false;  // An earlier agent started it.
  bool is_up_ = false;
  kube::TimePoint since_;                              // Of the start, or of the step of its end.
  kube::TimePoint start_at_ = kube::TimePoint::min();  // Not before.
  Ending ending_ = Ending::kNot;
  kube::Backoff retry_;
  kube::FailureNews news_;
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/mps/mps_daemon.h"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

namespace grus {
namespace {

namespace fs = std::filesystem;
using kube::Error;
using kube::ErrorCode;
using std::chrono::seconds;

constexpr kube::BackoffPolicy kRestart{seconds(1), std::chrono::minutes(1), 2.0, 0.0};
constexpr kube::Duration kStable = std::chrono::minutes(1);  // Then its next end is news.
constexpr kube::Duration kLongestStart = seconds(30), kLongestStep = seconds(10);
constexpr std::chrono::milliseconds kLongestCommand = seconds(5);
constexpr std::uintmax_t kLongestLog = 8 << 20;  // It lies in memory on most nodes.

}  // namespace

MpsDaemon::MpsDaemon(std::string program, std::string folder, std::string gpu, const kube::Clock& clock,
                     const kube::Log& log)
    : program_(std::move(program)),
      folder_(std::move(folder)),
      gpu_(std::move(gpu)),
      clock_(clock),
      log_(log),
      since_(clock.Now()),
      retry_(kRestart, clock.RandomSeed()) {
  process_ = ReadMark();
  if (process_ && !IsRunning(*process_)) process_.reset();
  is_adopted_ = process_.has_value();
  if (process_) log_.Info("the MPS daemon of a GPU runs already", {{"gpu", gpu_}, {"pid", process_->pid}});
}

Variables MpsDaemon::Environment() const {
  return {{"CUDA_VISIBLE_DEVICES", gpu_},
          {"CUDA_MPS_PIPE_DIRECTORY", PipesIn(folder_)},
          {"CUDA_MPS_LOG_DIRECTORY", LogsIn(folder_)}};
}

kube::Status MpsDaemon::Command(const std::string& command) const {
  return RunWithInput({program_}, Environment(), command + "\n", kLongestCommand);
}

bool MpsDaemon::HasGone() {
  if (!process_ || IsRunning(*process_)) return false;
  process_.reset();
  is_up_ = false;
  std::error_code ignored;
  fs::remove(fs::path(folder_) / "daemon", ignored);
  return true;
}

void MpsDaemon::Keep(std::int64_t memory_mib) {
  const bool was_ending = ending_ != Ending::kNot;
  if (HasGone()) {
    ending_ = Ending::kNot;
    if (was_ending) start_at_ = clock_.Now();
    else StartLater(Error(ErrorCode::kUnavailable, "it has ended; see " + LogsIn(folder_)));
  }
  if (was_ending && process_) return End();  // It cannot be called back.
  if (!process_ && clock_.Now() >= start_at_) Start();
  if (!process_) return;
  if (!is_up_) TryUp(memory_mib);
  else if (clock_.Now() - since_ >= kStable) retry_.Reset();
}

void MpsDaemon::Start() {
  std::error_code error;
  for (const std::string& folder : {PipesIn(folder_), LogsIn(folder_)}) {
    fs::create_directories(folder, error);
    // A server of MPS runs as the user of its clients, and has its files there, too.
    if (!error) fs::permissions(folder, fs::perms::all | fs::perms::sticky_bit, error);
    if (error) return StartLater(Error(ErrorCode::kUnavailable, "make " + folder + ": " + error.message()));
  }
  // Whatever the last one left there tells nothing of the next.
  for (const auto& entry : fs::directory_iterator(PipesIn(folder_), error)) fs::remove_all(entry.path(), error);
  for (const auto& entry : fs::directory_iterator(LogsIn(folder_), error)) {
    if (entry.file_size(error) > kLongestLog) fs::remove(entry.path(), error);
  }
  kube::Result<ProcessMark> started = StartProcess({program_, "-f"}, Environment(), LogsIn(folder_) + "/output.log");
  if (!started) return StartLater(started.error());
  process_ = *started;
  is_adopted_ = false;
  since_ = clock_.Now();
  if (const kube::Status written = WriteMark(); !written) {
    // The next agent would not find it.
    SignalGroup(*process_, SIGKILL);
    StartLater(written.error());
  }
}

void MpsDaemon::TryUp(std::int64_t memory_mib) {
  std::error_code ignored;
  if (fs::exists(fs::path(PipesIn(folder_)) / "control", ignored)) {
    // No client gets what is kept back of the GPU, whatever it says in its environment.
    const kube::Status answered = Command("set_default_device_pinned_mem_limit 0 " + std::to_string(memory_mib) + "M");
    if (answered) {
      is_up_ = true;
      news_.Reset();
      log_.Info("the MPS daemon of a GPU is up", {{"gpu", gpu_}, {"pid", process_->pid}, {"memory_mib", memory_mib}});
      return;
    }
  }
  // One that an earlier agent started may serve programs, whatever keeps this one from asking it.
  if (is_adopted_ || clock_.Now() - since_ < kLongestStart) return;
  SignalGroup(*process_, SIGKILL);
  since_ = clock_.Now();
}

void MpsDaemon::End() {
  if (HasGone()) {
    ending_ = Ending::kNot;
    retry_.Reset();
    log_.Info("the MPS daemon of a GPU has ended", {{"gpu", gpu_}});
  }
  if (!process_) return;
  is_up_ = false;
  const kube::TimePoint now = clock_.Now();
  if (ending_ != Ending::kNot && now - since_ < kLongestStep) return;
  since_ = now;
  switch (ending_) {
    case Ending::kNot:
      ending_ = Ending::kAsked;
      if (const kube::Status asked = Command("quit"); !asked) {
        log_.Warn("the MPS daemon of a GPU does not take the command to quit",
                  {{"gpu", gpu_}, {"error", asked.error().message()}});
      }
      return;
    case Ending::kAsked: ending_ = Ending::kTerminated; return SignalGroup(*process_, SIGTERM);
    case Ending::kTerminated:
    case Ending::kKilled: ending_ = Ending::kKilled; return SignalGroup(*process_, SIGKILL);
  }
}

void MpsDaemon::StartLater(const Error& why) {
  const kube::TimePoint now = clock_.Now();
  const kube::Duration wait = retry_.Next();
  start_at_ = now + wait;
  if (!news_.IsNews(why, now)) return;
  log_.Warn(
      "the MPS daemon of a GPU does not run, no parts of it are offered, starting it again",
      {{"gpu", gpu_}, {"error", why.message()}, {"in_seconds", std::chrono::duration_cast<seconds>(wait).count()}});
}

std::optional<ProcessMark> MpsDaemon::ReadMark() const {
  std::ifstream file(fs::path(folder_) / "daemon");
  ProcessMark mark;
  file >> mark.pid >> mark.started;
  return file && mark.pid > 1 ? std::optional(mark) : std::nullopt;
}

kube::Status MpsDaemon::WriteMark() const {
  const fs::path path = fs::path(folder_) / "daemon";
  std::ofstream file(path, std::ios::trunc);
  file << process_->pid << ' ' << process_->started << '\n';
  file.close();
  if (file) return {};
  return Error(ErrorCode::kUnavailable, "write " + path.string() + ": the agent must be able to write there");
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/mps/mps_sharing.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "clientlib/base/wait.h"
#include "nodeagent/mps/mps_share.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using std::chrono::seconds;

constexpr kube::Duration kLook = seconds(1), kAskAgain = seconds(10);
constexpr kube::Duration kSameFault = seconds(5);  // One fault is in both logs, in several lines.

}  // namespace

MpsSharing::MpsSharing(MpsOptions options, DeviceHolders& holders, const kube::Clock& clock, const kube::Log& log)
    : options_(std::move(options)),
      holders_(holders),
      clock_(clock),
      log_(log),
      record_(options_.folder, Enforcement::kMps),
      inventory_(options_.reserve_mib) {
  // Those of the agent before.
  if (options_.program.empty()) return;
  for (const std::string& gpu : record_.gpus()) DaemonOf(gpu);
  std::error_code ignored;  // That of a test is so already.
  if (!options_.shm_folder.empty()) {
    std::filesystem::permissions("/dev/shm", std::filesystem::perms::all | std::filesystem::perms::sticky_bit, ignored);
  }
}

void MpsSharing::Want(bool is_wanted) {
  const std::scoped_lock lock(mutex_);
  is_wanted_ = is_wanted;
}

void MpsSharing::See(const NodeSample& look) {
  const std::scoped_lock lock(mutex_);
  gpus_ = inventory_.Of(look);
  for (const SharedGpu& gpu : gpus_) seen_[gpu.uuid].index = gpu.index;
}

MpsSharing::OfGpu& MpsSharing::DaemonOf(const std::string& gpu) {
  std::unique_ptr<OfGpu>& found = daemons_[gpu];
  if (!found) {
    const std::string folder = FolderOf(gpu);
    found = std::make_unique<OfGpu>(
        OfGpu{MpsDaemon(options_.program, folder, gpu, clock_, log_), MpsLog(MpsDaemon::LogsIn(folder))});
  }
  return *found;
}

bool MpsSharing::HasProgram() {
  const bool is_there = !options_.program.empty() && access(options_.program.c_str(), X_OK) == 0;
  if (!is_there && !is_absence_told_) {
    log_.Warn(
        "no parts of GPUs are offered: the node's label asks for MPS, and its program is not there",
        {{"program", options_.program.empty() ? "(--mps-control is not set)" : options_.program},
         {"remedy",
          "bring it into the agent's container, as the chart does with nodeAgent.sharing.mps.enabled, or take the "
          "label away"}});
  }
  is_absence_told_ = !is_there;
  return is_there;
}

void MpsSharing::Run(const std::stop_token& stop) {
  do LookOnce();
  while (kube::WaitFor(clock_, kLook, stop));
}

void MpsSharing::LookOnce() {
  FollowDaemons();
  FollowLogs();
  const std::scoped_lock lock(mutex_);
  for (const auto& [gpu, one] : daemons_) {
    seen_[gpu].has_daemon = true;
    seen_[gpu].is_up = one->daemon.is_up();
  }
}

void MpsSharing::FollowDaemons() {
  bool is_wanted = false, is_known = false;
  std::vector<SharedGpu> gpus;
  {
    const std::scoped_lock lock(mutex_);
    is_known = is_wanted_.has_value();
    is_wanted = is_wanted_.value_or(false);
    gpus = gpus_;
  }
  if (!is_known) return;
  if (is_wanted) is_wanted = HasProgram();
  else is_absence_told_ = false;
  std::set<std::string> wanted;
  for (const SharedGpu& gpu : gpus) {
    const auto known = daemons_.find(gpu.uuid);
    // One that is sick keeps the daemon that it has.
    const bool has_one = known != daemons_.end() && known->second->daemon.is_running();
    if (is_wanted && (gpu.is_healthy || has_one)) wanted.insert(gpu.uuid);
    if (known != daemons_.end() || wanted.contains(gpu.uuid)) DaemonOf(gpu.uuid).memory_mib = gpu.memory_mib;
  }
  if (std::exchange(wanted_, wanted) != wanted) {
    used_.reset();
    ask_at_ = kube::TimePoint::min();
  }
  const bool has_others = std::ranges::any_of(daemons_, [&](const auto& one) { return !wanted.contains(one.first); });
  if (has_others && clock_.Now() >= ask_at_) {
    ask_at_ = clock_.Now() + kAskAgain;
    if (const auto holders = Holders()) {
      used_.emplace();
      for (const auto& [gpu, pods] : *holders) used_->insert(gpu);
    }
  }
  for (auto& [gpu, one] : daemons_) {
    // Whoever was given a part under MPS cannot do without its daemon.
    const bool is_used = used_ ? used_->contains(gpu) : one->daemon.is_running();
    if (wanted.contains(gpu) || (is_used && one->memory_mib > 0)) one->daemon.Keep(one->memory_mib);
    else if (!is_used) one->daemon.End();
  }
}

void MpsSharing::FollowLogs() {
  for (auto& [gpu, one] : daemons_) {
    const std::vector<std::string> faults = one->log.NewFaults();
    if (faults.empty()) continue;
    if (one->told_at != kube::TimePoint::min() && clock_.Now() - one->told_at < kSameFault) continue;
    TellFault(gpu, faults[0]);
    one->told_at = clock_.Now();
  }
}

std::optional<std::map<std::string, std::set<kube::ObjectKey>>> MpsSharing::Holders() {
  const kube::Result<std::vector<HeldDevices>> held = holders_.List();
  if (!held) return std::nullopt;
  std::map<std::string, std::set<kube::ObjectKey>> holders;
  for (const HeldParts& part : PartsOf(*held, kPartResources)) {
    const auto is_given = [&](const auto& one) { return record_.HasAll(one.first, one.second); };
    if (std::ranges::none_of(part.ids, is_given)) continue;
    for (const std::string& gpu : part.gpus()) holders[gpu].insert(part.pod);
  }
  return holders;
}

void MpsSharing::TellFault(const std::string& gpu, const std::string& line) {
  log_.Warn("MPS reports a fault of a program, others on its GPU may have ended with it",
            {{"gpu", gpu}, {"line", line}});
  {
    const std::scoped_lock lock(mutex_);
    ++seen_[gpu].faults;
  }
  const auto holders = Holders();
  if (!holders || !holders->contains(gpu) || !options_.on_fault) return;
  const std::set<kube::ObjectKey>& pods = holders->at(gpu);
  for (const kube::ObjectKey& pod : pods) {
    options_.on_fault(pod, "MPS reports a fault of a program on GPU " + gpu + ", of which " +
                               std::to_string(pods.size()) +
                               " pods have parts; programs of all of them may have ended with it: look for CUDA errors "
                               "in their logs. It says: " +
                               line);
  }
}

bool MpsSharing::MayGive(const std::string& gpu) const {
  const std::scoped_lock lock(mutex_);
  if (!is_wanted_.value_or(false)) return true;
  const auto seen = seen_.find(gpu);
  return seen != seen_.end() && seen->second.is_up;
}

kube::Status MpsSharing::Give(const PartToGive& part, ContainerSetup& setup) {
  bool is_wanted = false;
  {
    const std::scoped_lock lock(mutex_);
    is_wanted = is_wanted_.value_or(false);
  }
  // Who has whole GPUs is alone on them.
  is_wanted = is_wanted && !AreWholeGpus(part.resource, part.ids);
  if (kube::Status recorded = record_.Set(part.resource, part.ids, is_wanted); !recorded) return recorded;
  if (is_wanted) AddMps(part, MpsDaemon::PipesIn(FolderOf(part.ids.front().gpu)), options_.shm_folder, setup);
  return {};
}

kube::Status MpsSharing::MayStart(PartResource resource, const std::vector<PartId>& ids, const HeldParts*) {
  if (!record_.HasAll(resource, ids)) return {};
  const std::string& gpu = ids.front().gpu;
  const std::scoped_lock lock(mutex_);
  const auto seen = seen_.find(gpu);
  if (seen != seen_.end() && seen->second.is_up) return {};
  return Error(ErrorCode::kUnavailable, "the MPS daemon of GPU " + gpu +
                                            " is not up, which holds the container to its part; it is started again");
}

Enforcement MpsSharing::WayOf(const HeldParts& part) const {
  return record_.HasAll(part) ? Enforcement::kMps : Enforcement::kNone;
}

kube::Registry::Samples MpsSharing::Each(double (*number)(const Seen&)) const {
  const std::scoped_lock lock(mutex_);
  kube::Registry::Samples samples;
  for (const auto& [gpu, seen] : seen_) {
    if (seen.has_daemon) samples.push_back({{std::to_string(seen.index), gpu}, number(seen)});
  }
  return samples;
}

void MpsSharing::AddMetrics(kube::Registry& registry) const {
  registry.AddCounterFamily("grus_mps_faults_total", "Faults of programs that the logs of MPS told of.",
                            {"gpu", "uuid"},
                            [this] { return Each([](const Seen& seen) { return static_cast<double>(seen.faults); }); });
  registry.AddGaugeFamily("grus_mps_daemon_up", "Whether the MPS daemon of the GPU takes clients.", {"gpu", "uuid"},
                          [this] { return Each([](const Seen& seen) { return seen.is_up ? 1.0 : 0.0; }); });
}

}  // namespace grus

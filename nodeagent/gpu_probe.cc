// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/gpu_probe.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "clientlib/base/wait.h"

namespace grus {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr kube::Duration kPeriod = seconds(1);
// Each try takes all GPUs from the driver for a moment, also those that work.
constexpr kube::BackoffPolicy kRetry{seconds(5), minutes(5), 2.0, 0};

// Xids that programs cause by their own mistakes, as NVIDIA's device plugin counts them.
constexpr std::uint64_t kApplicationXids[] = {13, 31, 43, 45, 68, 109};

bool IsOfApplication(std::uint64_t xid) {
  return std::ranges::find(kApplicationXids, xid) != std::end(kApplicationXids);
}

void Raise(std::optional<std::uint32_t>& peak, const std::optional<std::uint32_t>& value) {
  if (value) peak = std::max(*value, peak.value_or(0));
}

void AddHistory(const SampleRing& ring, kube::TimePoint now, GpuState& state) {
  double sum = 0;
  int count = 0;
  ring.ForEach(now - minutes(1), [&](const GpuSample& sample) {
    if (!sample.utilization_percent) return;
    sum += *sample.utilization_percent;
    ++count;
  });
  if (count > 0) state.mean_utilization_percent = sum / count;
  ring.ForEach(now - minutes(2), [&](const GpuSample& sample) {
    Raise(state.peak_utilization_percent, sample.utilization_percent);
    Raise(state.peak_memory_controller_percent, sample.memory_controller_percent);
  });
  ring.ForEach(now - SampleRing::kAge, [&](const GpuSample& sample) {
    if (!sample.memory_used_bytes) return;
    state.peak_memory_used_bytes = std::max(*sample.memory_used_bytes, state.peak_memory_used_bytes.value_or(0));
  });
}

}  // namespace

bool NodeSample::is_complete() const {
  const auto answers = [](const GpuState& state) { return state.sample.has_value(); };
  return is_open && never_seen == 0 && std::ranges::all_of(gpus, answers);
}

GpuProbe::GpuProbe(GpuLibrary& library, ProcessOwners& owners, GpuFaults& faults, const kube::Clock& clock,
                   const kube::Log& log, NowTicks now_ticks)
    : library_(library),
      owners_(owners),
      faults_(faults),
      clock_(clock),
      log_(log),
      now_ticks_(std::move(now_ticks)),
      retry_(kRetry) {}

void GpuProbe::Run(const std::stop_token& stop) {
  kube::TimePoint next = clock_.Now();
  while (!stop.stop_requested()) {
    LookOnce();
    const kube::TimePoint now = clock_.Now();
    next = std::max(next + kPeriod, now);  // What took longer than a second is not made up for.
    if (!kube::WaitFor(clock_, next - now, stop)) return;
  }
}

void GpuProbe::LookOnce() {
  auto look = std::make_shared<NodeSample>(NodeSample{.at = clock_.Now()});
  OpenIfDue(look->at);
  LookAtBus();
  LookAtGpus(*look);
  LookAtProcesses(*look);
  FinishLook(*look);
  look->is_open = is_open_;
  look->never_seen = never_seen_;
  std::lock_guard lock(mutex_);
  newest_ = std::move(look);
}

std::shared_ptr<const NodeSample> GpuProbe::newest() const {
  std::lock_guard lock(mutex_);
  return newest_;
}

bool GpuProbe::MissesSomething() const {
  return !is_open_ || never_seen_ > 0 ||
         std::any_of(gpus_.begin(), gpus_.end(), [](const Tracked& one) { return !one.place; });
}

void GpuProbe::OpenIfDue(kube::TimePoint now) {
  if (!MissesSomething() || now < retry_at_) return;
  const kube::Result<std::vector<Gpu>> found = library_.Open();
  is_open_ = found.ok();
  if (is_open_) {
    if (faults_.ForgetIfDriverIsNew()) {
      for (Tracked& one : gpus_) one.last_xid.reset();  // The same one is news again.
      log_.Info("the GPU driver was loaded anew: its errors before do not count");
    }
    return Match(*found);
  }
  for (Tracked& one : gpus_) one.place.reset();
  const bool is_absent = found.error().code() == kube::ErrorCode::kNotFound;
  if (!std::exchange(is_told_, true)) {
    log_.Info(is_absent ? "this node has no GPU driver, and so no GPUs"
                        : "the GPU driver does not work: it is asked again later",
              {{"reason", found.error().message()}});
  }
}

void GpuProbe::Match(const std::vector<Gpu>& found) {
  for (Tracked& one : gpus_) one.place.reset();
  std::vector<std::size_t> unknown;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto known = std::ranges::find(gpus_, found[i].uuid, [](const Tracked& one) { return one.gpu.uuid; });
    if (known == gpus_.end()) {
      unknown.push_back(i);
      continue;
    }
    known->gpu = found[i];
    known->place = i;
  }
  for (const std::size_t i : unknown) {
    Tracked& one = Replaced(found[i].index);
    one.gpu = found[i];
    one.place = i;
    if (const auto xid = faults_.Of(one.gpu.uuid)) {
      log_.Warn("a GPU is sick since before the agent began", {{"uuid", one.gpu.uuid}, {"xid", *xid}});
    }
  }
  std::size_t lost = 0;
  for (Tracked& one : gpus_) {
    if (one.place) continue;
    ++lost;
    Lose(one, "the driver does not list it any more");
  }
  never_seen_ = library_.left_out() - std::min(library_.left_out(), lost);
}

GpuProbe::Tracked& GpuProbe::Replaced(int index) {
  for (Tracked& one : gpus_) {
    if (one.place || one.gpu.index != index) continue;
    faults_.Forget(one.gpu.uuid);
    return one = Tracked{};
  }
  return gpus_.emplace_back();
}

// Says what is back, and plans the next try for what is not.
void GpuProbe::FinishLook(const NodeSample& look) {
  for (std::size_t i = 0; i < look.gpus.size(); ++i) {
    if (!look.gpus[i].sample || !gpus_[i].place || !std::exchange(gpus_[i].is_told, false)) continue;
    log_.Info("a GPU is back", {{"uuid", gpus_[i].gpu.uuid}});
  }
  if (is_open_ && (std::exchange(is_told_, false) || newest_ == nullptr)) {
    log_.Info("the GPU driver works", {{"gpus", gpus_.size()}, {"lost", never_seen_}});
  }
  if (!MissesSomething()) retry_.Reset();
  else if (retry_at_ <= look.at) retry_at_ = look.at + retry_.Next();
}

// The Xids of all GPUs, and the PCIe rates of one: of all, they would take a third of a second.
void GpuProbe::LookAtBus() {
  if (!is_open_) return;
  for (const Xid& xid : library_.NewXids()) {
    for (Tracked& one : gpus_) {
      if (one.place != xid.gpu || one.last_xid == xid.code) continue;  // A sick GPU repeats itself.
      one.last_xid = xid.code;
      if (!IsOfApplication(xid.code)) faults_.Put(one.gpu.uuid, xid.code);
      log_.Warn("the GPU driver reports an error", {{"uuid", one.gpu.uuid}, {"xid", xid.code}});
    }
  }
  if (gpus_.empty()) return;
  turn_ = (turn_ + 1) % gpus_.size();
  Tracked& one = gpus_[turn_];
  if (!one.place) return;
  const kube::Result<PcieRates> rates = library_.Pcie(*one.place);
  one.pcie = rates ? *rates : PcieRates{};
  if (!rates) Note(rates.error(), one);
}

void GpuProbe::LookAtGpus(NodeSample& look) {
  for (Tracked& one : gpus_) {
    GpuState& state = look.gpus.emplace_back(GpuState{.gpu = one.gpu, .fault_xid = faults_.Of(one.gpu.uuid)});
    if (!is_open_ || !one.place) continue;
    const kube::Result<GpuSample> sample = library_.Sample(*one.place);
    if (!sample) {
      Note(sample.error(), one);
      continue;
    }
    state.sample = *sample;
    state.sample->pcie_receive_rate = one.pcie.receive;
    state.sample->pcie_transmit_rate = one.pcie.transmit;
    state.sample->last_xid = one.last_xid;
    one.ring.Add(look.at, *state.sample);
    AddHistory(one.ring, look.at, state);
  }
}

void GpuProbe::LookAtProcesses(NodeSample& look) {
  // All GPUs are asked before /proc is: then one look at a process proves that it is the one on all of them.
  owners_.BeginRound(now_ticks_());
  std::vector<std::vector<GpuProcess>> processes(gpus_.size());
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (!is_open_ || !gpus_[i].place) continue;
    kube::Result<std::vector<GpuProcess>> listed = library_.Processes(*gpus_[i].place);
    if (listed) processes[i] = *std::move(listed);
    else Note(listed.error(), gpus_[i]);
  }
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    for (GpuProcess& usage : processes[i]) {
      const ProcessOwners::Found found = owners_.Find(usage.pid);
      if (!found.owner) {
        ++look.gpus[i].unmapped;
        continue;
      }
      // The driver counts by PID, for a second: a process that was not there then may not be the one.
      if (!found.was_there) usage.sm_percent = usage.memory_controller_percent = std::nullopt;
      look.gpus[i].processes.push_back({usage, found.owner});
    }
  }
  owners_.EndRound();
}

void GpuProbe::Note(const kube::Error& error, Tracked& tracked) {
  if (error.code() == kube::ErrorCode::kGone) return Lose(tracked, error.message());
  is_open_ = false;
  for (Tracked& one : gpus_) one.place.reset();
  if (std::exchange(is_told_, true)) return;
  log_.Warn("the GPU driver is lost: it is asked again later", {{"reason", error.message()}});
}

void GpuProbe::Lose(Tracked& tracked, const std::string& reason) {
  tracked.place.reset();
  if (std::exchange(tracked.is_told, true)) return;
  log_.Warn("a GPU is lost: it is asked again later", {{"uuid", tracked.gpu.uuid}, {"reason", reason}});
}

}  // namespace grus

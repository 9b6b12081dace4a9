// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/limits/cuda_sharing.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "clientlib/base/wait.h"
#include "nodeagent/limits/cuda_share.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

constexpr kube::Duration kTurn = std::chrono::milliseconds(100), kTryAgain = std::chrono::seconds(1),
                         kInstallAgain = std::chrono::seconds(5), kAskAgain = std::chrono::seconds(5),
                         kCutAgain = std::chrono::seconds(1);
// The kubelet asks for the resources of a container one after the other, and for no other container's in between.
constexpr kube::Duration kSameContainer = std::chrono::seconds(2);

// Of the resources of a container that was given a part so, the one that brings its share; the end: there is none.
auto BringerOf(const HeldParts& part) {
  return std::ranges::find_if(part.ids, [](const auto& one) { return BringsShare(one.first); });
}

PartAmounts AmountsOf(const PartToGive& part) {
  PartAmounts amounts;
  amounts[part.resource] = static_cast<std::int64_t>(part.ids.size());
  return amounts;
}

double Seconds(std::chrono::nanoseconds time) { return std::max(0.0, std::chrono::duration<double>(time).count()); }

}  // namespace

CudaSharing::CudaSharing(CudaOptions options, DeviceHolders& holders, NewestLook newest_look, const kube::Clock& clock,
                         const kube::Log& log)
    : options_(std::move(options)),
      holders_(holders),
      newest_look_(std::move(newest_look)),
      clock_(clock),
      log_(log),
      library_(options_.library, options_.folder),
      record_(options_.folder + "/given", Enforcement::kCooperative),
      inventory_(options_.reserve_mib),
      shares_(options_.shares, options_.proc, clock, log) {}

void CudaSharing::Want(bool is_wanted) {
  const std::scoped_lock lock(mutex_);
  is_wanted_ = is_wanted;
}

void CudaSharing::Run(const std::stop_token& stop) {
  const auto every = [&](kube::Duration time, void (CudaSharing::*turn)()) {
    return clock_.Spawn([this, time, turn](const std::stop_token& end) {
      do (this->*turn)();
      while (kube::WaitFor(clock_, time, end));
    });
  };
  const kube::Thread asking = every(kAskAgain, &CudaSharing::AskOnce);
  const kube::Thread cutting = every(kCutAgain, &CudaSharing::CutOnce);
  do LookOnce();
  while (kube::WaitFor(clock_, kTurn, stop));
}

bool CudaSharing::HasWork() const {
  const std::scoped_lock lock(mutex_);
  return is_wanted_ || !record_.gpus().empty();
}

void CudaSharing::FollowLibrary() {
  const kube::TimePoint now = clock_.Now();
  if (now < install_at_) return;
  const kube::Status installed =
      options_.library.empty() ? Error(ErrorCode::kNotFound, "--cuda-library is not set") : library_.Install();
  install_at_ = now + (installed ? kInstallAgain : kTryAgain);
  if (!installed && news_.IsNews(installed.error(), now)) {
    log_.Warn("libgrus-cuda.so cannot be put on the node: what needs it is not offered and does not start",
              {{"error", installed.error().message()}});
  }
  if (installed) news_.Reset();
  const std::scoped_lock lock(mutex_);
  is_installed_ = installed.ok();
}

void CudaSharing::LookOnce() {
  const std::shared_ptr<const NodeSample> look = newest_look_();
  const bool is_new = look && look != std::exchange(seen_, look);
  if (is_new) {
    const std::scoped_lock lock(mutex_);
    gpus_ = inventory_.Of(*look);
  }
  if (!HasWork()) return;
  FollowLibrary();
  const std::scoped_lock lock(mutex_);
  if (is_new) shares_.NoteLook(*look);
  shares_.Turn();
}

void CudaSharing::AskOnce() {
  if (!HasWork()) return;
  const auto held = holders_.List();
  if (!held) return;
  const std::scoped_lock lock(mutex_);
  for (const HeldParts& part : PartsOf(*held, kPartResources)) {
    const auto bringer = BringerOf(part);
    if (bringer == part.ids.end() || !record_.HasAll(bringer->first, bringer->second)) continue;
    shares_.NoteHeld(ShareName(bringer->first, bringer->second), bringer->first, part);
  }
  shares_.RemoveOld();
}

void CudaSharing::CutOnce() {
  std::map<std::string, std::shared_ptr<KeptFiles>> files;
  {
    const std::scoped_lock lock(mutex_);
    files = shares_.FilesByName();
  }
  for (const auto& [name, kept] : files) {
    const kube::Result<bool> cut = kept->CutAccount();
    const std::scoped_lock lock(mutex_);
    shares_.NoteCut(name, kept.get(), cut);
  }
}

bool CudaSharing::MayGive(const std::string&) const {
  const std::scoped_lock lock(mutex_);
  return !is_wanted_ || is_installed_;
}

std::uint32_t CudaSharing::MatchHalves(Half half) {
  std::optional<Half> other = std::exchange(last_, std::nullopt);
  const bool is_other =
      other && other->resource != half.resource && other->gpu == half.gpu && half.at - other->at <= kSameContainer;
  if (!is_other) {
    last_ = std::move(half);
    return 0;
  }
  if (half.resource == PartResource::kMemory) return other->milli;
  if (Share* const share = shares_.Find(other->share)) share->limits.milli = half.milli;  // Written by the next turn.
  return 0;
}

kube::Status CudaSharing::Give(const PartToGive& part, ContainerSetup& setup) {
  const std::scoped_lock lock(mutex_);
  // Who has whole GPUs is alone on them.
  const bool is_given_so = is_wanted_ && !AreWholeGpus(part.resource, part.ids);
  if (!is_given_so || !BringsShare(part.resource)) {
    if (kube::Status recorded = record_.Set(part.resource, part.ids, is_given_so); !recorded) return recorded;
    shares_.Drop(part.resource, part.ids);
    if (is_given_so) {
      MatchHalves({.resource = part.resource,
                   .gpu = part.ids.front().gpu,
                   .milli = static_cast<std::uint32_t>(MilliOf(AmountsOf(part))),
                   .at = clock_.Now()});
    }
    return {};
  }
  const std::string& gpu = part.ids.front().gpu;
  const std::string name = ShareName(part.resource, part.ids);
  // No memory would mean no limit.
  if (part.memory_mib <= 0)
    return Error(
        ErrorCode::kUnavailable,
        "how much memory GPU " + gpu + " has is not known now; create the pod again once the node offers the GPU");
  std::int64_t milli = MilliOf(AmountsOf(part));
  if (part.resource == PartResource::kMemory) {
    milli = MatchHalves({.resource = part.resource, .gpu = gpu, .share = name, .at = clock_.Now()});
  }
  const ShareLimits limits = LimitsOf(gpu, part.memory_mib, milli, options_.context_mib);
  if (kube::Status put = shares_.Put(name, {.resource = part.resource, .ids = part.ids, .limits = limits}); !put) {
    return put;
  }
  if (kube::Status recorded = record_.Set(part.resource, part.ids, true); !recorded) return recorded;
  AddCudaMounts(library_, shares_.PathOf(name), setup);
  return {};
}

std::optional<ShareLimits> CudaSharing::LastLimits(const std::string& name, const std::string& gpu) {
  if (const Share* const known = shares_.Find(name)) return known->limits;
  const auto written = ShareFolder(shares_.PathOf(name)).ReadLimits(gpu);
  return written ? std::optional(*written) : std::nullopt;
}

kube::Status CudaSharing::MayStart(PartResource resource, const std::vector<PartId>& ids, const HeldParts* holder) {
  if (!BringsShare(resource) || !record_.HasAll(resource, ids)) return {};
  const std::scoped_lock lock(mutex_);
  const std::string what = "libgrus-cuda.so holds the container to its part of GPU " + ids.front().gpu + ", and ";
  if (!is_installed_) {
    return Error(ErrorCode::kUnavailable, what + "is not on the node; the agent tries again and logs why");
  }
  const std::string name = ShareName(resource, ids);
  Share next{.resource = resource, .ids = ids};
  std::optional<ShareLimits> limits;
  // The ids of an init container may be handed on: then the kubelet tells of the next container of its pod.
  const bool is_holder = holder != nullptr && holder->ids.contains(resource) && holder->ids.at(resource) == ids;
  if (is_holder) {
    next.pod = holder->pod;
    next.container = holder->container;
    limits = ShareLimitsOf(*holder, gpus_, options_.context_mib);
    const std::optional<ShareLimits> last = holder->paged_mib ? std::nullopt : LastLimits(name, ids.front().gpu);
    if (limits && last) limits->paged_bytes = last->paged_bytes;
  } else if (const std::optional<ShareLimits> last = LastLimits(name, ids.front().gpu)) {
    limits = last;
  } else {
    limits = ShareLimitsOf({.ids = {{resource, ids}}}, gpus_, options_.context_mib);
  }
  if (!limits) {
    return Error(ErrorCode::kUnavailable, what + "how much memory the GPU has is not known now; it can start later");
  }
  limits->beside_bytes = 0;
  next.limits = *std::move(limits);
  return shares_.Put(name, std::move(next));
}

kube::Registry::Samples CudaSharing::Each(const std::function<std::optional<double>(const Share&)>& number) const {
  const std::scoped_lock lock(mutex_);
  kube::Registry::Samples samples;
  for (const auto& [name, share] : shares_.shares()) {
    const std::optional<double> value = number(share);
    if (share.pod.name.empty() || !value) continue;
    const auto gpu = std::ranges::find(gpus_, share.limits.gpu, &SharedGpu::uuid);
    samples.push_back({{gpu == gpus_.end() ? "" : std::to_string(gpu->index), share.limits.gpu, share.pod.ns,
                        share.pod.name, share.container},
                       *value});
  }
  return samples;
}

void CudaSharing::AddMetrics(kube::Registry& registry) const {
  using Value = std::optional<double>;
  const std::vector<std::string> labels = {"gpu", "uuid", "namespace", "pod", "container"};
  const auto by_account = [this](double (*number)(const AccountCopy::Gpu&)) {
    return [this, number] {
      return Each([number](const Share& share) { return share.account ? Value(number(*share.account)) : Value(); });
    };
  };
  registry.AddGaugeFamily(
      "grus_cuda_memory_bytes",
      "Memory that the programs of a container have of its part of a GPU, as they count themselves.", labels,
      by_account([](const auto& gpu) { return static_cast<double>(gpu.memory_bytes); }));
  const auto paged = [this](std::uint64_t (*number)(const Share&)) {
    return [this, number] {
      return Each([number](const Share& share) {
        return share.limits.paged_bytes > 0 ? Value(static_cast<double>(number(share))) : Value();
      });
    };
  };
  registry.AddGaugeFamily(
      "grus_cuda_paged_bytes",
      "Memory that the programs of a container have past its part of a GPU, as they count themselves: it lies in the "
      "host's memory while the GPU has no room.",
      labels, paged([](const Share& share) { return share.paged_bytes; }));
  registry.AddGaugeFamily("grus_cuda_paged_limit_bytes", "How much of that it may have.", labels,
                          paged([](const Share& share) { return share.limits.paged_bytes; }));
  registry.AddGaugeFamily("grus_cuda_beside_bytes", "Memory that it has by the driver, and not by its own account.",
                          labels,
                          [this] { return Each([](const Share& share) { return Value(share.limits.beside_bytes); }); });
  registry.AddCounterFamily("grus_cuda_refusals_total", "Allocations that were refused as they went past its part.",
                            labels, by_account([](const auto& gpu) { return static_cast<double>(gpu.refused); }));
  registry.AddCounterFamily("grus_cuda_time_seconds_total", "GPU time that it was charged.", labels,
                            by_account([](const auto& gpu) { return Seconds(gpu.charged); }));
  registry.AddCounterFamily("grus_cuda_waited_seconds_total",
                            "How long its launches waited for GPU time, all threads together.", labels,
                            by_account([](const auto& gpu) { return Seconds(gpu.waited); }));
  registry.AddGaugeFamily("grus_cuda_rate_milli", "Thousandths of the GPU's time that it may have now.", labels,
                          [this] { return Each([](const Share& share) { return Value(share.limits.rate_milli); }); });
  registry.AddGaugeFamily(
      "grus_cuda_escaped_bytes",
      "Memory of its processes that are not in its account, or have far more than is there, for ten seconds or more.",
      labels, [this] {
        return Each([](const Share& share) { return Value(static_cast<double>(share.use.escaped_bytes())); });
      });
}

Enforcement CudaSharing::WayOf(const HeldParts& part) const {
  return record_.HasAll(part) ? Enforcement::kCooperative : Enforcement::kNone;
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/dra/slice_writer.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "clientlib/base/wait.h"
#include "clientlib/model/core_v1.h"
#include "nodeagent/sharing/held_parts.h"

namespace grus {
namespace {

using kube::ErrorCode;
using kube::Json;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr kube::Duration kLook = seconds(1), kAskHolders = seconds(5);
constexpr kube::BackoffPolicy kRetry{seconds(1), minutes(5), 2.0, 0.25};

}  // namespace

kube::InformerOptions SliceWriter::CacheOptions(const std::string& node) {
  return {.field_selector = "spec.nodeName=" + node + ",spec.driver=" + kGpuDriver};
}

SliceWriter::SliceWriter(kube::Client& client, const kube::Informer& slices, std::string node, Gpus gpus,
                         DeviceHolders& holders, const kube::Clock& clock, const kube::Log& log)
    : client_(client),
      slices_(slices),
      node_(std::move(node)),
      gpus_(std::move(gpus)),
      holders_(holders),
      clock_(clock),
      log_(log),
      retry_(kRetry, clock.RandomSeed()) {}

void SliceWriter::Run(const std::stop_token& stop) {
  do LookOnce(stop);
  while (kube::WaitFor(clock_, kLook, stop));
}

void SliceWriter::LookOnce(const std::stop_token& stop) {
  const kube::TimePoint now = clock_.Now();
  if (now < next_ || !slices_.HasList()) return;
  const std::optional<Json> devices = Devices(now);
  if (!devices) return;
  if (const kube::Status done = Reconcile(*devices, stop); !done) return Failed(done.error());
  retry_.Reset();
  news_.Reset();
}

std::optional<Json> SliceWriter::Devices(kube::TimePoint now) {
  const std::vector<SharedGpu> gpus = gpus_();
  if (now >= ask_at_) {
    ask_at_ = now + kAskHolders;
    const kube::Result<std::vector<HeldDevices>> held = holders_.List();
    std::vector<std::string> uuids;
    for (const SharedGpu& gpu : gpus) uuids.push_back(gpu.uuid);
    if (held) held_ = HeldOtherwise(*held, {}, uuids);
    else if (news_.IsNews(held.error(), now)) {
      log_.Warn("the kubelet does not say who holds GPUs, the node's ResourceSlice stays as it is",
                {{"error", held.error().message()}});
    }
  }
  return held_ && !gpus.empty() ? std::optional(DevicesOf(gpus, *held_)) : std::nullopt;
}

kube::Status SliceWriter::Reconcile(const Json& devices, const std::stop_token& stop) {
  std::shared_ptr<const NodeSlice> own;
  for (const auto& slice : slices_.List<NodeSlice>()) {
    if (slice->metadata.name == SliceNameOf(node_)) {
      own = slice;
      continue;
    }
    if (kube::Status gone = client_.Delete(kube::KindOf<NodeSlice>(), {"", slice->metadata.name}, {}, stop); !gone) {
      return gone;
    }
    log_.Info("a ResourceSlice that is left over is removed", {{"slice", slice->metadata.name}});
  }
  if (!own) return Create(devices, stop);
  Json patch = PatchOf(*own, node_, devices);
  if (patch.is_null()) return {};
  const auto done = client_.Patch(kube::KindOf<NodeSlice>(), {"", SliceNameOf(node_)}, kube::PatchType::kMerge, patch,
                                  {.metadata_only = true}, stop);
  // The cache has not seen our own last write yet.
  if (!done && done.error().code() == ErrorCode::kConflict) return {};
  if (!done) return kube::Error(done.error()).with("patch ResourceSlice " + SliceNameOf(node_));
  log_.Info("the node's ResourceSlice is written", {{"devices", devices.AsArray()->size()}});
  return {};
}

kube::Status SliceWriter::Create(const Json& devices, const std::stop_token& stop) {
  const auto node = client_.Get<kube::Node>({"", node_}, stop);
  if (!node) return kube::Error(node.error()).with("read node " + node_);
  const auto made = client_.Create(kube::KindOf<NodeSlice>(), "", SliceOf(node_, (*node)->metadata.uid, devices),
                                   {.metadata_only = true}, stop);
  if (!made && made.error().code() == ErrorCode::kAlreadyExists) return {};  // As above.
  if (!made) return kube::Error(made.error()).with("create ResourceSlice " + SliceNameOf(node_));
  log_.Info("the node's ResourceSlice is written", {{"devices", devices.AsArray()->size()}});
  return {};
}

void SliceWriter::Failed(const kube::Error& error) {
  if (error.code() == ErrorCode::kCancelled) return;
  const kube::TimePoint now = clock_.Now();
  next_ = now + std::max(retry_.Next(), error.retry_after().value_or(kube::Duration::zero()));
  if (!news_.IsNews(error, now)) return;
  log_.Warn("the node's ResourceSlice cannot be written, trying again", {{"error", error.message()}});
}

kube::Status SliceWriter::Remove(kube::Client& client, const std::string& node, const std::stop_token& stop) {
  return client.Delete(kube::KindOf<NodeSlice>(), {"", SliceNameOf(node)}, {}, stop);
}

}  // namespace grus

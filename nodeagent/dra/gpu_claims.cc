// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/dra/gpu_claims.h"

#include <algorithm>
#include <utility>

#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

// A server that does not serve the kind also says 404, and knows nothing of the claim.
bool IsGone(const Error& error) { return error.code() == ErrorCode::kNotFound && error.reason() == "NotFound"; }

}  // namespace

GpuClaims::GpuClaims(kube::Client& client, PreparedClaims& prepared, Node node, const kube::Log& log)
    : client_(client), prepared_(prepared), node_(std::move(node)), log_(log) {}

kube::Result<std::vector<ReadyDevice>> GpuClaims::Prepare(const ClaimName& claim) {
  kube::Result<AllocatedClaim> allocated = Allocated(claim);  // It may take long.
  const std::scoped_lock lock(mutex_);
  const std::optional<AllocatedClaim> before = prepared_.Find(claim.uid);
  if (!before && !accepts_) {
    return Error(ErrorCode::kUnavailable, TextOf(claim) + ": node " + node_.name +
                                              " gives no GPUs by claims now; label " + api::kSharingModeLabel +
                                              "=dra says that it does. Delete the pod, so that it "
                                              "goes to another node");
  }
  if (before) {
    // Its containers may run: what they have is theirs.
    const bool is_other = allocated && allocated->parts != before->parts;
    if (!is_other) return ReadyDevicesOf(*before, node_.name);
  }
  if (!allocated) return std::move(allocated).error();
  if (kube::Status free = CheckFree(*allocated); !free) return std::move(free).error();
  if (kube::Status written = prepared_.Write(*allocated); !written)
    return kube::Error(written.error()).with(TextOf(claim));
  log_.Info("a claim is prepared", {{"claim", claim.ns + "/" + claim.name}, {"gpu", allocated->parts.front().gpu}});
  return ReadyDevicesOf(*allocated, node_.name);
}

kube::Result<AllocatedClaim> GpuClaims::Allocated(const ClaimName& claim) {
  const auto found = client_.Get<kube::ResourceClaim>({claim.ns, claim.name});
  if (!found && IsGone(found.error())) {
    return Error(ErrorCode::kNotFound, TextOf(claim) + " does not exist (any more): delete the pod");
  }
  if (!found) return kube::Error(found.error()).with("read " + TextOf(claim));
  const std::vector<SharedGpu> gpus = node_.gpus();
  if (gpus.empty()) {
    return Error(ErrorCode::kUnavailable, TextOf(claim) + ": the agent of node " + node_.name +
                                              " sees no GPU yet; wait, or look into its log if this lasts");
  }
  return PartsOf(**found, claim, node_.name, gpus);
}

kube::Status GpuClaims::CheckFree(const AllocatedClaim& claim) {
  const kube::Result<std::map<std::string, std::string>> others = node_.holders_otherwise();
  if (!others) return kube::Error(others.error()).with(TextOf(claim.claim));
  for (const AllocatedPart& part : claim.parts) {
    const auto other = others->find(part.gpu);
    if (other == others->end()) continue;
    return Error(ErrorCode::kUnavailable, TextOf(claim.claim) + ": " + part.gpu + " is held by " + other->second +
                                              ": wait until that has ended, or delete pod and claim, so that it gets "
                                              "another GPU");
  }
  const std::vector<SharedGpu> gpus = node_.gpus();
  if (CheckRoom(claim, prepared_.List(), gpus)) return {};
  RemoveStale();  // The scheduler knows sooner than the kubelet's word comes that a claim is gone.
  return CheckRoom(claim, prepared_.List(), gpus);
}

kube::Status GpuClaims::Unprepare(const ClaimName& claim) {
  const std::scoped_lock lock(mutex_);
  const bool was_there = prepared_.Find(claim.uid).has_value();
  if (kube::Status removed = prepared_.Remove(claim.uid); !removed)
    return kube::Error(removed.error()).with(TextOf(claim));
  if (was_there) log_.Info("a claim is not prepared any more", {{"claim", claim.ns + "/" + claim.name}});
  return {};
}

kube::Result<bool> GpuClaims::IsStale(const AllocatedClaim& claim, const std::stop_token& stop) {
  const auto found = client_.Get<kube::ResourceClaim>({claim.claim.ns, claim.claim.name}, stop);
  if (!found && IsGone(found.error())) return true;
  if (!found) return found.error();
  const kube::ResourceClaim& now = **found;
  if (now.metadata.uid != claim.claim.uid || !now.status.allocation) return true;
  return std::ranges::none_of(now.status.allocation->devices.results, [&](const kube::DeviceAllocation& result) {
    return result.driver.view() == kGpuDriver && result.pool.view() == node_.name;
  });
}

void GpuClaims::RemoveStale(const std::stop_token& stop) {
  for (const AllocatedClaim& claim : prepared_.List()) {
    const kube::Result<bool> is_stale = IsStale(claim, stop);
    if (!is_stale) return;  // The next one would take as long.
    // It may have been allocated anew, and prepared, since it was asked about.
    if (!*is_stale || prepared_.Find(claim.claim.uid) != claim) continue;
    if (const kube::Status removed = prepared_.Remove(claim.claim.uid); !removed) {
      log_.Warn("a claim that is gone is still prepared", {{"error", removed.error().message()}});
    } else {
      log_.Info("a claim that is gone is not prepared any more",
                {{"claim", claim.claim.ns + "/" + claim.claim.name}, {"uid", claim.claim.uid}});
    }
  }
}

}  // namespace grus

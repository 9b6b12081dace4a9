// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/lease_record.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kube {
namespace {

Json ToJson(const LeaseSpec& spec) {
  return Json::MakeObject({{"holderIdentity", spec.holder_identity.value_or("")},
                           {"leaseDurationSeconds", *spec.lease_duration_seconds},
                           {"acquireTime", ToMicroText(*spec.acquire_time)},
                           {"renewTime", ToMicroText(*spec.renew_time)},
                           {"leaseTransitions", *spec.lease_transitions}});
}

}  // namespace

LeaseRecord::LeaseRecord(Client& client, const Clock& clock, ObjectKey lease, std::string identity, Duration duration)
    : client_(client), clock_(clock), lease_(std::move(lease)), identity_(std::move(identity)), duration_(duration) {}

const std::string& LeaseRecord::holder() const {
  static const std::string kNone;
  return spec_.holder_identity ? *spec_.holder_identity : kNone;
}

Result<bool> LeaseRecord::TryHold(std::stop_token stop) {
  if (IsOurs()) {
    // Usually nobody else has written since our last renewal: skip the read.
    Result<bool> renewed = Write(Wanted(), stop);
    if (!renewed || *renewed) return renewed;
  }
  if (Status read = Read(stop); !read) return std::move(read).error();
  if (const auto end = expires_at(); end && clock_.Now() < *end) return false;
  return Write(Wanted(), stop);
}

Status LeaseRecord::TryRelease(std::stop_token stop) {
  if (is_outcome_unknown_) {
    if (Status read = Read(stop); !read) return read;
  }
  if (!IsOurs()) return {};
  LeaseSpec released = Wanted();
  released.holder_identity = "";
  released.lease_duration_seconds = 1;  // The shortest that the API server accepts.
  Result<bool> written = Write(released, stop);
  if (!written) return std::move(written).error();
  if (*written) return {};
  if (Status read = Read(stop); !read) return read;
  if (!IsOurs()) return {};
  return Error(ErrorCode::kConflict, "somebody else has changed the lease");
}

Status LeaseRecord::Read(std::stop_token stop) {
  Result<std::shared_ptr<Lease>> lease = client_.Get<Lease>(lease_, std::move(stop));
  if (lease) {
    Observe(**lease);
  } else if (lease.error().code() == ErrorCode::kNotFound) {
    exists_ = false;
    spec_ = {};
  } else {
    return std::move(lease).error();
  }
  is_outcome_unknown_ = false;
  return {};
}

void LeaseRecord::Observe(const Lease& lease) {
  // Only a change of the spec shows that the holder lives; a new label also changes the resource version.
  if (!exists_ || lease.spec != spec_) changed_at_ = clock_.Now();
  exists_ = true;
  spec_ = lease.spec;
  resource_version_ = lease.metadata.resource_version;
}

std::optional<TimePoint> LeaseRecord::expires_at() const {
  if (!exists_ || IsOurs() || holder().empty()) return std::nullopt;
  // Use the duration in the record, not our own: they may differ during an upgrade.
  const std::int32_t promised = spec_.lease_duration_seconds.value_or(0);
  return changed_at_ + (promised > 0 ? std::chrono::seconds(promised) : duration_);
}

LeaseSpec LeaseRecord::Wanted() const {
  const MicroTime now{{clock_.WallNow()}};
  const std::int32_t transitions = std::max(0, spec_.lease_transitions.value_or(0));
  const bool is_takeover = exists_ && !IsOurs() && transitions < std::numeric_limits<std::int32_t>::max();
  LeaseSpec wanted;
  wanted.holder_identity = identity_;
  wanted.lease_duration_seconds = static_cast<std::int32_t>(std::chrono::ceil<std::chrono::seconds>(duration_).count());
  wanted.acquire_time = IsOurs() && spec_.acquire_time ? *spec_.acquire_time : now;
  wanted.renew_time = now;
  wanted.lease_transitions = transitions + (is_takeover ? 1 : 0);
  return wanted;
}

// True if the holder is now as `spec` says; false if somebody else was faster.
Result<bool> LeaseRecord::Write(const LeaseSpec& spec, std::stop_token stop) {
  if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
  const TimePoint sent = clock_.Now();
  const Kind& kind = KindOf<Lease>();
  Json body = Json::MakeObject({{"spec", ToJson(spec)}});
  Result<std::shared_ptr<Object>> written = Error(ErrorCode::kInternal, "not sent");
  if (exists_) {
    body["metadata"] = Json::MakeObject({{"resourceVersion", resource_version_}});
    written = client_.Patch(kind, lease_, PatchType::kMerge, body, {}, std::move(stop));
  } else {
    body["apiVersion"] = kind.ApiVersion();
    body["kind"] = kind.kind;
    body["metadata"] = Json::MakeObject({{"name", lease_.name}, {"namespace", lease_.ns}});
    written = client_.Create(kind, lease_.ns, body, {}, std::move(stop));
  }
  if (written) {
    is_outcome_unknown_ = false;
    Observe(static_cast<const Lease&>(**written));
    // Believe the returned record: a webhook may have changed what we wrote.
    if (IsOurs()) renewed_at_ = sent;
    return holder() == *spec.holder_identity;
  }
  switch (written.error().code()) {
    case ErrorCode::kConflict:
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kNotFound: return false;  // NotFound: deleted since we saw it.
    default: break;
  }
  // A status in the 4xx range is a refusal; anything else may hide a write that was carried out.
  if (written.error().http_status() < 400 || written.error().http_status() >= 500) is_outcome_unknown_ = true;
  return std::move(written).error();
}

}  // namespace kube

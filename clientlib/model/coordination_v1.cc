// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/coordination_v1.h"

namespace kube {

std::span<const FieldInfo> LeaseSpec::Fields() {
  using T = LeaseSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::holder_identity>("holderIdentity"),     Field<&T::lease_duration_seconds>("leaseDurationSeconds"),
      Field<&T::acquire_time>("acquireTime"),           Field<&T::renew_time>("renewTime"),
      Field<&T::lease_transitions>("leaseTransitions"), Field<&T::strategy>("strategy"),
      Field<&T::preferred_holder>("preferredHolder"),
  };
  return kFields;
}

const Kind& Lease::ResourceKind() {
  static constexpr FieldInfo kFields[] = {Field<&Lease::spec>("spec")};
  static const Kind kKind = MakeKind<Lease>(
      {.group = "coordination.k8s.io", .version = "v1", .kind = "Lease", .plural = "leases", .fields = kFields});
  return kKind;
}

}  // namespace kube

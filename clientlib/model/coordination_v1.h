// SPDX-License-Identifier: Apache-2.0
// Lease: who leads, and until when. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clientlib/model/kind.h"

namespace kube {

struct LeaseSpec {
  std::optional<std::string> holder_identity;
  std::optional<std::int32_t> lease_duration_seconds;
  std::optional<MicroTime> acquire_time, renew_time;
  std::optional<std::int32_t> lease_transitions;
  std::optional<std::string> strategy, preferred_holder;  // Coordinated leader election.
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const LeaseSpec&, const LeaseSpec&) = default;
};

struct Lease : Object {
  LeaseSpec spec;
  static const Kind& ResourceKind();
};

}  // namespace kube

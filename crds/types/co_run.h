// SPDX-License-Identifier: Apache-2.0
// How fast a workload was while one other workload ran on the same GPUs. Part of WorkloadProfile.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "clientlib/model/field.h"
#include "clientlib/model/time.h"

namespace api {

inline constexpr std::int64_t kMaxCoRuns = 128;

// Of one partner on one GPU type. Speeds are decimals: shares of the speed that the workload has when its GPUs are its
// own, so "0.8" is a fifth less; a little above 1 is noise.
struct CoRun {
  std::string name = {};                        // Of partner and GPU type: one of each.
  std::string partner = {};                     // The fingerprint of its workload.
  std::string gpu_type = {};                    // Empty: not known.
  std::string speed = {}, low = {}, high = {};  // The mean, and the ends of its 90 % interval.
  std::int32_t count = 0;                       // Samples that the mean is of.
  kube::Time time = {};                         // Of the last one.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const CoRun&, const CoRun&) = default;
};

}  // namespace api

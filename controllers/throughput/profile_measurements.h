// SPDX-License-Identifier: Apache-2.0
// The points of a WorkloadProfile as input of the model. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "controllers/throughput/throughput_fit.h"
#include "crds/types/workload_profile.h"

namespace grus {

// The points of one GPU type as input of the model, without those that have no GPUs or no speed. A batch of unknown
// size counts as one sample per GPU, or as one batch that all GPUs share.
struct TypeMeasurements {
  std::vector<Measurement> all;
  // Of the batch size that the knee is about.
  std::vector<Measurement> chosen;
  bool is_total_fixed = false;  // The batch of all GPUs together stays the same as the job grows.
  double batch_size = 1;        // Samples of one GPU, or of all together.
};
// nullopt: the point has no GPUs or no speed.
std::optional<Measurement> MeasurementOf(const api::WorkloadProfileSpec& profile, const api::ProfilePoint& point);
TypeMeasurements MeasurementsOf(const api::WorkloadProfileSpec& profile, const std::string& gpu_type);

// The most GPUs that a point of this type had on one node; 8 if no point says.
int GpusPerNode(const api::WorkloadProfileSpec& profile, const std::string& gpu_type);

}  // namespace grus

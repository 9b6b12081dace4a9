// SPDX-License-Identifier: Apache-2.0
// What is known of jobs that share a GPU: what each does when it is alone, and how fast it was beside another.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace grus {

// What a job does when it has the GPU for itself. What is not known is missing; it is never zero for that.
struct SoloFeatures {
  std::optional<double> gpu_utilization = {};   // Share of the time in which the GPU computes, in percent.
  std::optional<double> memory_bandwidth = {};  // Share of the time in which its memory is read or written, in percent.
  std::optional<double> memory_mebibytes = {};  // Of the GPU's memory.
  std::optional<double> step_milliseconds = {};  // Of one training step.
  std::optional<double> batch_size = {};         // Samples in a step.
  friend bool operator==(const SoloFeatures&, const SoloFeatures&) = default;
  friend auto operator<=>(const SoloFeatures&, const SoloFeatures&) = default;
};

// Each of them.
inline constexpr std::array kSoloFeatures = {&SoloFeatures::gpu_utilization, &SoloFeatures::memory_bandwidth,
                                             &SoloFeatures::memory_mebibytes, &SoloFeatures::step_milliseconds,
                                             &SoloFeatures::batch_size};

// Jobs with one fingerprint are to have one set of features, means of what was measured: with each new sample in them,
// every question about the job were a new one for PairSpeedCache.
struct SharedJob {
  std::string fingerprint = {};  // Of workload and configuration. Empty: not known, so it is like no other job.
  std::string family = {};       // The workload, whatever its batch size. Empty: as the fingerprint says (FamilyOf).
  SoloFeatures solo = {};        // On the GPU type in question.
  friend bool operator==(const SharedJob&, const SharedJob&) = default;
  friend auto operator<=>(const SharedJob&, const SharedJob&) = default;
};

// How fast `job` was while `partner` ran on the same GPU.
struct CoRunSample {
  SharedJob job = {}, partner = {};
  std::string gpu_type = {};
  double speed = 1;  // As a share of its solo speed; a little above 1 is noise.
  double count = 1;  // How many times it was measured; `speed` is the mean.
};

struct PairQuestion {
  SharedJob job = {}, partner = {};
  std::string gpu_type = {};
};

// A speed as a share of the solo speed, in (0, 1]. Decide by `low`: whoever shares a GPU was promised something.
struct SpeedShare {
  double speed = 1;
  double low = 1, high = 1;  // The 90 % interval.
};

// Speeds above solo by more than this are no noise: the solo speed is wrong.
inline constexpr double kMaxSpeedShare = 1.1;

// A job that is a thousand times slower did not run; such a speed is in another unit.
inline constexpr double kMinSpeedShare = 0.001;
inline constexpr double kMaxCount = 1e12;  // Of measurements of a pair.

// Why no such speed, or feature, can have been measured; nullopt if it can.
std::optional<std::string> WhyNoSpeed(double speed);
std::optional<std::string> WhyNoFeatures(const SoloFeatures& solo);
// Features that cannot have been measured become features that are not known.
SharedJob WithPossibleFeatures(SharedJob job);

struct WorkloadFamily {
  std::string name;
  double batch_size = 0;  // 0: not known.
};

// Jobs of one family differ in their batch size alone. It is the one of `solo`, or the number in a name such as
// "ResNet-18 (batch size 64)", "bert_bs32" or, as no batch size is known, "bert:32".
WorkloadFamily FamilyOf(const SharedJob& job);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The status of a TrialJob: its trials, the curve of throughput over GPUs, the model behind it, and what it
// recommends. Numbers as in measurement.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clientlib/model/box.h"
#include "clientlib/model/compact_string.h"
#include "clientlib/model/condition.h"
#include "crds/types/measurement.h"
#include "crds/types/trial_reasons.h"

namespace api {

// etcd takes 1.5 MB. With all lists full and all texts at their longest, an object has 0.8 MB, its managedFields
// included.
inline constexpr std::int64_t kMaxTrials = 256;
inline constexpr std::int64_t kMaxCurvePoints = 512;

struct Trial {
  std::string name = {};
  TrialConfig config = {};
  TrialPhase phase = TrialPhase::kPending;
  TrialReason reason = TrialReason::kNone;
  kube::CompactString message = {};  // Of many trials the same.
  std::optional<kube::Time> start_time = {}, end_time = {};
  kube::Box<Measurement> measured = {};
  std::int64_t gpu_seconds = 0;
  bool is_repeat = false;  // It was a straggler, and runs or ran once more.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const Trial&, const Trial&) = default;
};

enum class CurveSource { kUnknown, kMeasured, kInterpolated, kExtrapolated };
std::span<const std::string_view> EnumNames(CurveSource);

struct CurvePoint {
  std::string gpu_type = {};
  std::int32_t gpus = 0, batch_size = 0;
  CurveSource source = CurveSource::kUnknown;
  std::string throughput = {}, throughput_low = {}, throughput_high = {};
  std::string speed_up = {}, efficiency = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const CurvePoint&, const CurvePoint&) = default;
};

// Fastest: the highest throughput. Cheapest: the most work for a GPU second. Knee: the smallest size with nine tenths
// of the highest throughput.
enum class Goal { kFastest, kCheapest, kKnee };
std::span<const std::string_view> EnumNames(Goal);

struct Recommendation {
  Goal goal = Goal::kFastest;
  std::optional<std::int32_t> gpus = {};  // Empty: not known, and the message says why.
  std::string gpu_type = {};
  std::int32_t batch_size = 0;
  CurveSource source = CurveSource::kUnknown;
  std::string throughput = {}, speed_up = {}, message = {};
  std::string size = {};  // "8 A100 x 64", for a column.
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const Recommendation&, const Recommendation&) = default;
};

struct TrialCost {
  std::int64_t gpu_seconds = 0, wall_seconds = 0;
  std::optional<kube::Time> time = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const TrialCost&, const TrialCost&) = default;
};

struct CacheSavings {
  std::int64_t gpu_seconds = 0;
  std::int32_t trials = 0;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const CacheSavings&, const CacheSavings&) = default;
};

struct TrialJobStatus {
  std::int64_t observed_generation = 0;
  TrialJobPhase phase = TrialJobPhase::kPending;
  std::vector<kube::Condition> conditions = {};
  std::string progress = {};  // "5/8": trials that ended, and all.
  std::optional<kube::Time> eta = {}, eta_latest = {};
  ThroughputUnit throughput_unit = ThroughputUnit::kNotKnown;
  std::vector<Trial> trials = {};
  std::vector<CurvePoint> curve = {};
  std::optional<ThroughputModel> model = {};
  std::vector<Recommendation> recommendation = {};
  TrialCost spent = {};
  CacheSavings saved_by_cache = {};
  std::string fingerprint = {};
  std::optional<kube::Time> start_time = {}, completion_time = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const TrialJobStatus&, const TrialJobStatus&) = default;
};

}  // namespace api

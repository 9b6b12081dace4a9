// SPDX-License-Identifier: Apache-2.0
// Annotations by which a training says itself how far it is: on the ElasticHorovodJob, or on its launcher's pod. Pure.
#pragma once

#include <string>

#include "clientlib/model/meta.h"

namespace grus {

inline constexpr char kStepAnnotation[] = "ai.centauruscloud.io/step";
inline constexpr char kTotalStepsAnnotation[] = "ai.centauruscloud.io/total-steps";
inline constexpr char kEpochAnnotation[] = "ai.centauruscloud.io/epoch";
inline constexpr char kTotalEpochsAnnotation[] = "ai.centauruscloud.io/total-epochs";

// The texts of these annotations; empty: missing.
struct PushedTexts {
  std::string step = {}, total_steps = {}, epoch = {}, total_epochs = {};
  bool HasPosition() const { return !step.empty() || !epoch.empty(); }
  friend bool operator==(const PushedTexts&, const PushedTexts&) = default;
};

// Each at most kLongestPush long: what is longer is no number, and stays one character too long.
inline constexpr std::size_t kLongestPush = 40;
PushedTexts PushedTextsOf(const kube::ObjectMeta& object);

// Whether the annotations of the two differ in nothing else.
bool DifferOnlyInPush(const kube::StringMap& a, const kube::StringMap& b);

}  // namespace grus

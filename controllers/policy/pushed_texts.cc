// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/pushed_texts.h"

#include <algorithm>

namespace grus {
namespace {

constexpr const char* kAll[] = {kStepAnnotation, kTotalStepsAnnotation, kEpochAnnotation, kTotalEpochsAnnotation};

bool HasAny(const kube::StringMap& annotations) {
  return std::ranges::any_of(kAll, [&](const char* name) { return annotations.contains(name); });
}

}  // namespace

PushedTexts PushedTextsOf(const kube::ObjectMeta& object) {
  const auto text = [&](const char* name) { return std::string(object.Annotation(name).substr(0, kLongestPush + 1)); };
  return {text(kStepAnnotation), text(kTotalStepsAnnotation), text(kEpochAnnotation), text(kTotalEpochsAnnotation)};
}

bool DifferOnlyInPush(const kube::StringMap& a, const kube::StringMap& b) {
  if (!HasAny(a) && !HasAny(b)) return a == b;
  kube::StringMap others_of_a = a, others_of_b = b;
  for (const char* name : kAll) {
    others_of_a.erase(name);
    others_of_b.erase(name);
  }
  return others_of_a == others_of_b;
}

}  // namespace grus

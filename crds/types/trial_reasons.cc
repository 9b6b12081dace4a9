// SPDX-License-Identifier: Apache-2.0
#include "crds/types/trial_reasons.h"

#include <cstddef>

namespace api {

std::span<const std::string_view> EnumNames(TrialJobPhase) {
  static constexpr std::string_view kNames[] = {"Pending", "Waiting", "Running", "Suspended", "Succeeded", "Failed"};
  return kNames;
}

std::span<const std::string_view> EnumNames(TrialJobReason) {
  static constexpr std::string_view kNames[] = {
      "Pending",           "WaitingForRoom",  "WaitingForIdle",  "TrialsRunning",   "Suspended",    "Complete",
      "BudgetSpent",       "NothingMeasured", "JobNotFound",     "InvalidWorkload", "InvalidSpace", "InvalidPattern",
      "SourceUnreachable", "NameTaken",       "TemplateRefused", "NotPermitted"};
  return kNames;
}

std::string_view ToString(TrialJobReason reason) { return EnumNames(reason)[static_cast<std::size_t>(reason)]; }

std::span<const std::string_view> EnumNames(TrialPhase) {
  static constexpr std::string_view kNames[] = {"Pending",   "Starting", "Warming", "Measuring",
                                                "Succeeded", "Failed",   "Skipped"};
  return kNames;
}

std::span<const std::string_view> EnumNames(TrialReason) {
  static constexpr std::string_view kNames[] = {"",
                                                "WaitingForRoom",
                                                "PrecisionReached",
                                                "WindowEnded",
                                                "FromCache",
                                                "TimeSpent",
                                                "NoOutput",
                                                "NothingMatched",
                                                "WorkloadEnded",
                                                "ImageUnavailable",
                                                "OutOfMemory",
                                                "Crashed",
                                                "Preempted",
                                                "NodeLost",
                                                "Refused",
                                                "DoesNotFit",
                                                "BudgetSpent",
                                                "NoMoreGain",
                                                "OverMaxTrials"};
  return kNames;
}

}  // namespace api

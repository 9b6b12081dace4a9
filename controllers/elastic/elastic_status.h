// SPDX-License-Identifier: Apache-2.0
// What a user reads of a job: phase, conditions, counts, and sentences with numbers. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "controllers/elastic/elastic_plan.h"
#include "controllers/policy/wording.h"

namespace grus {

// Under load, the kubelet probes a worker's ssh server for the first time after up to this long.
inline constexpr kube::Duration kSilenceGrace = std::chrono::seconds(10);

inline constexpr char kPhasePending[] = "Pending";    // Workers are starting.
inline constexpr char kPhaseWaiting[] = "Waiting";    // The minimum does not fit.
inline constexpr char kPhaseStarting[] = "Starting";  // The launcher is starting.
inline constexpr char kPhaseRunning[] = "Running";
inline constexpr char kPhaseSuspended[] = "Suspended";
inline constexpr char kPhaseSucceeded[] = "Succeeded";
inline constexpr char kPhaseFailed[] = "Failed";
inline bool HasEnded(const api::ElasticHorovodJobStatus& status) {
  return status.phase == kPhaseSucceeded || status.phase == kPhaseFailed;
}

// The status as it was, with counts, names and observedGeneration of now.
api::ElasticHorovodJobStatus BaseStatus(const View& view, const Sizes& sizes);

// Phase and conditions of a job that is neither ended nor stalled. `plan` is complete but for its status.
void SetRunningConditions(api::ElasticHorovodJobStatus& status, const View& view, const Plan& plan, const Sizes& sizes);
void SetStalled(api::ElasticHorovodJobStatus& status, const View& view, Reason reason, const std::string& message);
void SetEnd(api::ElasticHorovodJobStatus& status, const View& view, Reason reason, const std::string& message);

// What keeps the workers or the launcher from running, and of how many; empty: nothing is known.
std::string TroubleMessage(const View& view);
// Until time alone changes what is said: a worker whose ssh server does not answer becomes a trouble, or a launcher
// that has ended no longer counts as one that trains.
std::optional<kube::Duration> TimeUntilStatusChanges(const View& view);

// "shrunk from 34 to 32 workers: ..."
std::string ScaleMessage(const View& view, const Sizes& sizes, int from, int to, ScaleReason reason);

// How long this change may wait for others, so that one write of the status serves many; zero: it decides something.
// Of a usual start the CRD's default status says most; what a job that waits for room is told may wait longest.
kube::Duration PatienceFor(const api::ElasticHorovodJobStatus& before, const api::ElasticHorovodJobStatus& after);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// What a user reads of a job: phase, conditions, counts, and sentences with numbers. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "controllers/elastic/elastic_plan.h"
#include "controllers/queues/wording.h"

namespace grus {

// Under load, the kubelet's first probe of a worker's ssh server may come as late as this.
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

// The old status with the present counts, names and observedGeneration.
api::ElasticHorovodJobStatus BaseStatus(const View& view, const Sizes& sizes);

// Counts the workers that exist, without those that the plan drops.
void CountWorkers(api::ElasticHorovodJobStatus& status, const View& view, const WorkerSet& drop);

// Phase and conditions of a job that is neither ended nor stalled. `plan` is complete but for its status.
void SetRunningConditions(api::ElasticHorovodJobStatus& status, const View& view, const Plan& plan, const Sizes& sizes);
void SetStalled(api::ElasticHorovodJobStatus& status, const View& view, Reason reason, const std::string& message);
void SetEnd(api::ElasticHorovodJobStatus& status, const View& view, Reason reason, const std::string& message);

// What keeps workers or the launcher from running, and the number of other workers in trouble; empty: nothing is known.
std::string TroubleMessage(const View& view);
// When time alone changes the status: an ssh server that does not answer becomes a worker's trouble, or a launcher that
// has ended no longer counts as training.
std::optional<kube::Duration> TimeUntilStatusChanges(const View& view);

// "shrunk from 34 to 32 workers: ..."
std::string ScaleMessage(const View& view, const Sizes& sizes, int from, int to, ScaleReason reason);

// How long this change may wait for others, so that one write of the status serves many; zero: it decides something. A
// usual start may wait, because the CRD's default status says most of it. The message of a job that waits for room may
// wait longest.
kube::Duration PatienceFor(const api::ElasticHorovodJobStatus& before, const api::ElasticHorovodJobStatus& after);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Many runs of many workloads under planned and random faults, and a report that a person can act on: each failure
// comes with one line that replays it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clientlib/testing/faults/fault_run.h"

namespace kube::testing {

using Workloads = std::vector<std::unique_ptr<const Workload>>;

struct CampaignOptions {
  int schedules = 2000;                  // Over all workloads, plus the runs without faults.
  std::uint64_t seed = 1;                // Of the choice of schedules.
  int threads = 0;                       // 0: one for each core.
  std::vector<std::string> workloads{};  // Empty: all.
};

struct CampaignReport {
  int schedules = 0, divergences = 0;  // With faults.
  int controls = 0, false_alarms = 0;  // Without faults, on other seeds.
  int unreached = 0;                   // Schedules with a fault that never happened.
  std::vector<std::string> failures;   // A schedule as text, then its complaints, indented.
  std::string table;                   // By workload and kind of fault.
  double seconds = 0;
  Duration longest_takeover{};  // Of leases, in virtual time.
  bool ok() const { return divergences == 0 && false_alarms == 0 && unreached == 0; }
};

// `progress` is called now and then with a line, from any thread, one at a time.
CampaignReport RunCampaign(const Workloads& workloads, const CampaignOptions& options,
                           const std::function<void(const std::string&)>& progress);

struct SweepReport {
  int places = 0;                     // Where a fault can happen in the run without faults, until it is at rest.
  int runs = 0, divergences = 0;      // The first is without faults.
  std::vector<std::string> failures;  // As those of a campaign.
  double seconds = 0;
};

// Kills the process at each of its writes: one run without faults, then two for each write, in which the process dies
// right before it, or right after it without the answer.
SweepReport SweepWrites(const Workload& workload, std::uint64_t seed, int threads);
// Plays faults at each of its questions to World::asked: each kind of them at each question, or of several `parts` one,
// another one at the next question.
SweepReport SweepQueries(const Workload& workload, std::uint64_t seed, int threads, int parts = 1);

// What is wrong with one schedule; empty: nothing. Errors: an unknown workload.
Result<std::vector<std::string>> Replay(const Workloads& workloads, const Schedule& schedule);

}  // namespace kube::testing

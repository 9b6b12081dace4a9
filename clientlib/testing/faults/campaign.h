// SPDX-License-Identifier: Apache-2.0
// Many runs of many workloads under planned and random faults, and a report that a person can act on: each failure is
// one line that plays it again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "clientlib/testing/faults/fault_run.h"

namespace kube::testing {

using Workloads = std::vector<std::unique_ptr<const Workload>>;

struct CampaignOptions {
  int schedules = 2000;                  // Over all workloads; runs without faults come on top.
  std::uint64_t seed = 1;                // Of the choice of schedules.
  int threads = 0;                       // 0: one for each core.
  std::vector<std::string> workloads{};  // Empty: all.
};

struct CampaignReport {
  int schedules = 0, divergences = 0;  // With faults.
  int controls = 0, false_alarms = 0;  // Without, on other seeds.
  int unreached = 0;                   // Schedules with a fault that never happened.
  std::vector<std::string> failures;   // A schedule as text, then what was wrong, indented.
  std::string table;                   // By workload and kind of fault.
  double seconds = 0;
  Duration longest_takeover{};  // Of leases, in virtual time.
  bool ok() const { return divergences == 0 && false_alarms == 0 && unreached == 0; }
};

// `progress` is called now and then with a line, from any thread, one at a time.
CampaignReport RunCampaign(const Workloads& workloads, const CampaignOptions& options,
                           const std::function<void(const std::string&)>& progress);

struct SweepReport {
  int writes = 0;                     // Of the run without faults, until all is at rest.
  int runs = 0, divergences = 0;      // That without faults is the first.
  std::vector<std::string> failures;  // As those of a campaign.
  double seconds = 0;
};

// A process that dies may die at any write: one run without faults, and then two for each write of it, in which the
// process dies right before the write, and right after it without its answer.
SweepReport SweepWrites(const Workload& workload, std::uint64_t seed, int threads);

// What is wrong with one schedule; empty: nothing. Errors: a workload that is not there.
Result<std::vector<std::string>> Replay(const Workloads& workloads, const Schedule& schedule);

}  // namespace kube::testing

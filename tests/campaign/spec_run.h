// SPDX-License-Identifier: Apache-2.0
// One job whose spec is edited while it lives: what there is at each rest, and what a fresh deploy gives instead.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "clientlib/testing/faults/fault_run.h"
#include "tests/campaign/spec_edits.h"

namespace grus::testing {

inline constexpr char kEditedJob[] = "train";

// Where a job is when somebody begins to edit it.
struct SpecBase {
  std::string name;
  int nodes, gpus;   // Of each node.
  std::string spec;  // As for Submit().
};
const std::vector<SpecBase>& SpecBases();

struct SpecPlan {
  const SpecBase* base = nullptr;
  std::uint64_t seed = 1;
  // All edits within a minute, so that each but the first meets work in progress. Else each waits for rest.
  bool is_quick = false;
  std::vector<SpecEdit> edits;
};
// "base=running seed=3 quick spec.workersSpec.maxReplicas=8"
std::string ToText(const SpecPlan& plan);
kube::Result<SpecPlan> ParsePlan(std::string_view text);

// The schema that edits come from, and the object of a base as the server stores it.
const Json& JobSchema();
Json BaseObject(const SpecBase& base);

// What the API server will say to each edit, one after the other.
struct Rehearsal {
  std::vector<Json> wanted;      // What the user sends.
  std::vector<Json> stored;      // What is stored then; the first one is the base, before all edits.
  std::vector<bool> is_refused;  // 422. Then nothing changes.
};
Rehearsal Rehearse(const SpecPlan& plan);

// Rests: before all; after each edit (if quick: after all of them); after the undoing, if `edits` says so; and after a
// restart by suspending and resuming.
struct LiveRun {
  kube::testing::Outcome outcome;
  std::vector<bool> is_refused;  // By edit.
};
struct LiveRunOptions {
  std::size_t edits = 0;  // How many of the plan's.
  bool undoes = false;
  bool restarts = false;
};
LiveRun RunLive(const SpecPlan& plan, const Rehearsal& rehearsal, const LiveRunOptions& options);

// A deploy of `job` in the cluster of `base`; one rest.
kube::testing::Outcome RunFresh(const SpecBase& base, std::uint64_t seed, const Json& job);

}  // namespace grus::testing

// SPDX-License-Identifier: Apache-2.0
// Whether a job whose spec was edited is where a fresh deploy of that spec is, history aside. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "clientlib/model/json.h"

namespace grus::testing {

using kube::Json;

// What there is at one rest: RestState::state, parsed. Pods are lists: all of one name but for its ending.
using Snapshot = std::map<std::string, Json>;
Snapshot ParseSnapshot(const std::map<std::string, std::string>& state);

// Of the job in it.
std::string PhaseIn(const Snapshot& snapshot);  // "" if there is no job.
bool HasEnded(const Snapshot& snapshot);        // Succeeded, Failed or deleted.
bool IsStalled(const Snapshot& snapshot);
bool IsShort(const Snapshot& snapshot);  // Granted fewer workers than it wants.
bool IsForeign(const Json& job);         // Left to another controller.

// How the templates of two specs differ.
struct TemplateChange {
  bool workers = false;
  bool launcher = false;        // Its command is enough.
  bool launcher_place = false;  // More than its command.
  bool start = false;           // What it needs to start, which one that trains is not asked for again.
  TemplateChange& operator|=(const TemplateChange& other);
};
TemplateChange ChangeBetween(const Json& job, const Json& other);

struct Judgement {
  std::vector<std::string> wrong;  // Empty: equal, history aside.
  // They are equal only if pods may be older than their templates: once they are restarted they must not be.
  bool is_by_history = false;
};

// `change`: from any spec that the live job had. `was_short`: at some time there was not room for all workers, so which
// ordinals run is the scheduler's choice.
Judgement Judge(const Snapshot& fresh, const Snapshot& live, const TemplateChange& change, bool was_short);

// `before` and `after`, but for the spec of the job: for an edit that must do nothing.
std::vector<std::string> ChangesOfOthers(Snapshot before, Snapshot after);

}  // namespace grus::testing

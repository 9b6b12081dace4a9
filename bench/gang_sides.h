// SPDX-License-Identifier: Apache-2.0
// Ways to the same number of running pods, measured by turns and compared with each other.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/gang_objects.h"

namespace bench {

// One of the ways, and what was measured of it.
struct Side {
  std::string name;
  std::vector<std::string> manager;  // Its arguments; none: it does not run.
  std::function<bool(const std::string& ns)> create;
  std::function<bool(const std::string& ns)> check = {};        // Once all pods run; false: something is wrong.
  std::vector<double> created{}, lifted{}, bound{}, seconds{};  // Since the first create: until all pods are.
  std::vector<double> cpu{}, memory{}, writes{}, status_lag{};
};

// Runs each side in each round, in an order that changes from round to round. The first side is what the others are
// compared with. `label`: of namespaces and logs.
bool Compare(const GangWorld& world, std::vector<Side>& sides, int pods, int rounds, const std::string& label);

// Of the times until all pods run.
double MedianRatio(const Side& side, const Side& base);
void PrintSide(const Side& side, const Side& base, std::optional<double> limit, bool has_manager_limits);

Side PlainSide(const GangWorld& world, std::vector<GangSize> gangs);  // Pods without gates, for the scheduler alone.
Side GangSide(const GangWorld& world, const std::string& name, const std::string& nominations,
              std::vector<GangSize> gangs);

// The first pods of a cluster come slowly: not counted.
bool WarmUp(const GangWorld& world);

}  // namespace bench

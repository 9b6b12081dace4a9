// SPDX-License-Identifier: Apache-2.0
// Lone pods with parts of GPUs, which a stock scheduler binds through grus's extender, in the fault campaign.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/campaign/stock_scheduler.h"

namespace grus::testing {

class LonePartWorkload final : public kube::testing::Workload {
 public:
  struct Traits {
    std::string name = {};
    std::function<void(World& world)> prepare = {};  // The CRDs and the scheduler are there.
    std::vector<Step> steps = {};
    int processes = 1;
    bool uses_leases = false;
    CallHabits habits = {};
    ExtenderPort::Verbs (*stand_in)(World& world) = nullptr;  // In place of grus: a wrong one.
  };
  explicit LonePartWorkload(Traits traits) : traits_(std::move(traits)) {}

  std::string_view name() const override { return traits_.name; }
  void Prepare(World& world) const override;
  std::vector<Step> Steps() const override { return traits_.steps; }
  void RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const override;
  int processes() const override { return traits_.processes; }
  bool uses_leases() const override { return traits_.uses_leases; }
  // None: pods are others' objects.
  std::vector<std::string> owned_resources() const override { return {}; }
  bool Damage(std::string_view, Json&) const override { return false; }
  std::string NameOf(std::string_view resource, const Json& object) const override;
  void Mask(std::string_view resource, Json& object) const override;
  std::vector<kube::testing::Invariant> Invariants() const override;
  std::vector<std::string> CheckRest(const World& world) const override;

 private:
  const Traits traits_;
};

// A StatefulSet of so many pods, each of which asks the stock scheduler for so much of that resource.
void SubmitLone(World& world, const std::string& name, int replicas, int amount, const std::string& resource);
void ScaleLone(World& world, const std::string& name, int replicas);
// Of the set, pods that are ready on nodes that are there; those without a node.
int LoneRunning(const World& world, const std::string& name);
int LoneWaiting(const World& world, const std::string& name);

}  // namespace grus::testing

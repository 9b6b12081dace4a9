// SPDX-License-Identifier: Apache-2.0
// PodGroups in the fault campaign: what all of their workloads share, and words for what users do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/campaign/gang_invariants.h"

namespace grus::testing {

class GangWorkload final : public kube::testing::Workload {
 public:
  struct Traits {
    std::string name;
    std::function<void(World& world)> prepare;  // The CRDs are there.
    std::vector<Step> steps;
    GangRules rules{};
    std::vector<std::string> alike{};  // Gangs of which chance decides who comes first.
    int processes = 1;
    bool uses_leases = false;
    Nominations nominations = Nominations::kAuto;
    bool is_without_grus = false;  // Who starts the gang is part of `prepare`: a wrong one.
  };
  explicit GangWorkload(Traits traits) : traits_(std::move(traits)) {}

  std::string_view name() const override { return traits_.name; }
  void Prepare(World& world) const override;
  std::vector<Step> Steps() const override { return traits_.steps; }
  void RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const override;
  int processes() const override { return traits_.processes; }
  bool uses_leases() const override { return traits_.uses_leases; }
  // None: pods and groups are others' objects. How often members are made is an invariant (GangRules).
  std::vector<std::string> owned_resources() const override { return {}; }
  bool Damage(std::string_view, Json&) const override { return false; }
  std::string NameOf(std::string_view resource, const Json& object) const override;
  void Mask(std::string_view resource, Json& object) const override;
  std::vector<kube::testing::Invariant> Invariants() const override { return GangInvariants(traits_.rules); }
  std::vector<std::string> CheckRest(const World& world) const override;

 private:
  const Traits traits_;
};

// `seconds`: its scheduleTimeoutSeconds. Long ones are for gangs that nothing keeps apart: longer than any fault hides
// from the manager that they are together.
inline constexpr int kShortTimeout = 20, kLongTimeout = 1200;
void SubmitGroup(World& world, const std::string& name, int min_member, int seconds = kLongTimeout);
// A StatefulSet whose pods are members of `group`; empty: of the group of its own name. `pod_spec` is a merge patch.
void SubmitSet(World& world, const std::string& name, int replicas, int gpus, const std::string& group = {},
               std::string_view pod_spec = "{}");
// A Job of so many pods at once, members of `group`. `job_spec` is a merge patch.
void SubmitJob(World& world, const std::string& name, int pods, int gpus, const std::string& group = "gang",
               std::string_view job_spec = "{}");
void SubmitMember(World& world, const std::string& name, const std::string& group, int gpus);
// A member that was made without the gate.
void SubmitUngated(World& world, const std::string& name, const std::string& group, int gpus);
// A pod of nobody's gang.
void SubmitOutsider(World& world, const std::string& name, int gpus, std::string_view pod_spec = "{}");
// The work of all members that run is done.
void EndWork(World& world, const std::string& group);

// Does it a moment after the first change that `is_it` holds of. REQUIRES: a workload is being prepared.
void Once(World& world, const std::function<bool(const kube::testing::ServerChange&)>& is_it,
          const std::function<void(World&, const kube::testing::ServerChange&)>& act);
// Of a gated member for a node.
bool IsNomination(const kube::testing::ServerChange& change);

std::string ReasonOf(const World& world, const std::string& group);  // Of its Ready condition.
// Its phase is Running, with just so many members that have not ended, all of which are ready on nodes that are there.
bool Runs(const World& world, const std::string& group, int members);
bool WaitsWhole(const World& world, const std::string& group, int members);  // So many, all of them gated, for room.
bool IsRunning(const World& world, const std::string& pod);

}  // namespace grus::testing

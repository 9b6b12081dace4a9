// SPDX-License-Identifier: Apache-2.0
// ElasticHorovodJobs in the fault campaign: what all of their workloads share, and words for what users do.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/campaign/app_workload.h"

namespace grus::testing {

inline constexpr char kJobs[] = "elastichorovodjobs.ai.centauruscloud.io";

class ElasticWorkload final : public kube::testing::Workload {
 public:
  struct Traits {
    std::string name;
    std::function<void(World& world)> prepare;  // Nodes and jobs; the CRDs are there.
    std::vector<Step> steps;
    // Whose workers are deleted by somebody gives its room to whoever asks first, which is chance.
    bool has_rival = false;
    int processes = 1;
    bool uses_leases = false;
    // How often a launcher is tried depends on how long a fault hides something, or on a clock that jumps; and whether
    // the workers are a gang on what there is when they are started again.
    bool has_retries = false;
    bool is_without_grus = false;  // Who acts in its place is part of `prepare`: a wrong one.
    kube::Duration slack = kFaultySlack;
  };
  explicit ElasticWorkload(Traits traits) : traits_(std::move(traits)) {}

  std::string_view name() const override { return traits_.name; }
  void Prepare(World& world) const override;
  std::vector<Step> Steps() const override { return traits_.steps; }
  void RunProcess(const kube::testing::ProcessContext& context, std::stop_token stop) const override;
  int processes() const override { return traits_.processes; }
  bool uses_leases() const override { return traits_.uses_leases; }
  std::vector<std::string> owned_resources() const override;
  bool AreCounted(std::string_view resource) const override;
  bool Damage(std::string_view resource, Json& object) const override;
  std::string NameOf(std::string_view resource, const Json& object) const override;
  void Mask(std::string_view resource, Json& object) const override;
  std::vector<kube::testing::Invariant> Invariants() const override;
  std::optional<kube::Duration> QuietTime(const World& world) const override;
  std::vector<std::string> CheckRest(const World& world) const override;

 private:
  const Traits traits_;
};

// Creates a job of that name whose spec is a usual one with `spec` (a merge patch) on top.
void Submit(World& world, const std::string& name, std::string_view spec);
// The launchers that run print a line now and then, but those with the annotation kSilent.
inline constexpr char kSilent[] = "grus.test/silent";
void KeepPrinting(World& world);
void Edit(World& world, const std::string& name, std::string_view spec);
// The training ends: its launcher's pods get that outcome, until the job is over.
void EndTraining(World& world, const std::string& name, const std::string& outcome);

std::string PhaseOf(const World& world, const std::string& name);  // Empty: there is no such job.
std::string ConditionReason(const World& world, const std::string& name, std::string_view type);
// Running, with exactly so many workers granted, ready and listed for discovery, and a launcher pod that runs.
bool Trains(const World& world, const std::string& name, int workers);
// Of a job that is gone, that nothing is left. A launcher's pod without an owner is nobody's: somebody deleted its Job
// and left it behind, as the API does by default, and then the job went, so that grus has nothing to look after.
bool LeftNothing(const World& world, const std::string& name);
bool HoldsNothing(const World& world, const std::string& name);  // No launcher, and no pods but ended ones.

}  // namespace grus::testing

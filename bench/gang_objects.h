// SPDX-License-Identifier: Apache-2.0
// The objects that benches of gangs create, and the cluster they create them in.
#pragma once

#include <string>
#include <vector>

#include "bench/gang_observer.h"
#include "clientlib/client/client.h"
#include "tests/kit/objects.h"

namespace bench {

// What all scenarios share. References: it dies last.
struct GangWorld {
  kube::Client& client;
  GangObserver& observer;
  const kube::Clock& clock;
  std::string kubeconfig, manager;  // Paths.
  int threads = 8;                  // That create objects.

  // For ManagerRun.
  std::vector<std::string> ManagerArguments(const std::string& controllers, const std::string& nominations) const {
    return {"--kubeconfig",  kubeconfig,  "--controllers", controllers,
            "--nominations", nominations, "--log-level",   "info"};
  }
};

using kit::kGpus;

struct GangSize {
  std::string name;
  int members = 8, units = 1;    // Each member asks for so many units
  std::string resource = kGpus;  // of this.
  std::string priority_class = {};
  std::vector<int> by_turns = {};  // Units of its members by turns, instead of `units`.

  int UnitsOf(int member) const {
    return by_turns.empty() ? units : by_turns[static_cast<std::size_t>(member) % by_turns.size()];
  }
};

// A pod of a gang, or, without the gate, the same pod for the scheduler alone.
kube::Json MakeGangPod(const std::string& name, const std::string& gang, int units, bool is_gated,
                       const std::string& resource = kGpus);
// A pod of a gang that never had the gate: the scheduler may bind it at any time.
kube::Json MakeUngatedMember(const std::string& name, const std::string& gang, int units, const std::string& resource);
kube::Json MakePodGroup(const GangSize& gang, int timeout_seconds);
kube::Json MakeGangSet(const GangSize& gang);  // A StatefulSet of gated pods.
kube::Json MakeGangJob(const GangSize& gang);  // A Job of gated pods, with the backoffLimit that is the default: 6.

// PodGroups first, in order, then the pods; plain: the pods alone, without gate. False and a message on the first
// error.
bool CreateGangs(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs);
bool CreateMembers(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs);  // No PodGroup.
bool CreatePlainPods(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs);
// Like CreateGangs(), but lifts the gates itself as soon as a gang's pods exist, with the smallest possible patch each
// and without any controller; `is_nominated`: after another patch that nominates the pod for a node of 8 GPUs.
bool CreateAndLift(const GangWorld& world, const std::string& ns, const std::vector<GangSize>& gangs,
                   bool is_nominated);
// Takes the gates from pods of the namespace as they come, until it is done with so many. After Record() of the
// namespace.
bool LiftAsTheyCome(const GangWorld& world, int pods);
std::vector<GangSize> EqualGangs(int gangs, int members, int gpus);
int TotalMembers(const std::vector<GangSize>& gangs);

kube::Status CreateObject(kube::Client& client, const kube::Kind& kind, const std::string& ns,
                          const kube::Json& object);

// A namespace that is gone, with all that was in it, at the latest when this is.
class BenchNamespace {
 public:
  BenchNamespace(const GangWorld& world, const std::string& name);
  ~BenchNamespace() { Remove(); }
  bool Exists() const { return exists_; }
  const std::string& name() const { return name_; }
  bool Remove();  // False and a message if it did not go away.

 private:
  const GangWorld& world_;
  const std::string name_;
  bool exists_ = false;
};

}  // namespace bench

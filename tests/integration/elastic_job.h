// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of ElasticHorovodJob: a manager for all of them, a namespace and a pool of nodes
// for each.
//
// Nothing waits for a fixed time: a test says what must come true and goes on when it is. Nodes carry the
// label grus.test/pool, and jobs select those of their own test, so that tests do not influence each other;
// launchers run on a node of the suite that no test deletes.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "controllers/elastic/elastic_view.h"
#include "tests/integration/manager_process.h"
#include "tests/integration/world.h"
#include "tests/kit/conditions.h"
#include "tests/kit/pods.h"

namespace grus::testing {

using JobPtr = std::shared_ptr<const api::ElasticHorovodJob>;
using PodPtr = std::shared_ptr<const kube::Pod>;
using PodList = std::vector<PodPtr>;

// Writes to the API server, from the manager's own metrics: by verb and kind ("patch Pod"), how many.
using Writes = std::map<std::string, int>;

class ElasticJob : public ::testing::Test {
 protected:
  static void SetUpTestSuite();  // StartWorld() and StartManager().
  static void TearDownTestSuite();
  static void StartWorld();
  void SetUp() override;
  void TearDown() override;

  static World& world() { return *world_; }
  static kube::Client& client() { return world_->client(); }
  static ManagerProcess& manager() { return *manager_; }
  // With ports of its own; the metrics' and the health server's stand in its log.
  static void StartManager(std::vector<std::string> more_arguments = {});  // REQUIRES: none runs.
  static void KillManager();                                               // As a lost node would.
  static Writes CountWrites();

  const std::string& ns() const { return ns_; }
  const std::string& pool() const { return ns_; }

  // Nodes of this test's pool.
  std::string AddNode(int gpus, std::string name = {});  // Ready when it returns. Its name.
  void AddNodes(int count, int gpus);
  std::string AddNodeWithoutKubelet(int gpus);  // Ready, but nobody runs what is bound to it.
  void DeleteNode(const std::string& name);

  // A job with short graces whose pods run in the right places; `spec` is merged over it.
  kube::Json Manifest(const std::string& name, std::string_view spec) const;
  void Create(std::string_view spec, const std::string& name = kName);
  void Edit(std::string_view patch, const std::string& name = kName);  // Merge patch of the whole object.
  void Scale(int replicas, const std::string& name = kName);           // Through the scale subresource.
  template <typename T>
  void Delete(const std::string& name) {
    world_->Delete(kube::KindOf<T>(), {ns_, name});
  }
  template <typename T>
  void Patch(const std::string& name, std::string_view merge_patch, const std::string& subresource = {}) {
    world_->Patch(kube::KindOf<T>(), {ns_, name}, kube::PatchType::kMerge, FromText(merge_patch), subresource);
  }
  void SetOutcome(const std::string& pod, const std::string& outcome);  // "succeed" or "fail"

  // What is there.
  JobPtr TheJob(const std::string& name = kName) const { return world_->Get<api::ElasticHorovodJob>(ns_, name); }
  std::string Phase(const std::string& name = kName) const;
  bool IsTrue(std::string_view type, const std::string& name = kName) const;
  std::string ReasonOf(std::string_view condition, const std::string& name = kName) const {
    return kit::ReasonOf(TheJob(name), condition);
  }
  std::string MessageOf(std::string_view condition, const std::string& name = kName) const {
    return kit::MessageOf(TheJob(name), condition);
  }
  bool Says(std::string_view condition, std::string_view text, const std::string& name = kName) const;
  std::shared_ptr<const kube::Job> Launcher(const std::string& name = kName) const;
  std::set<std::string> Hosts(const std::string& name = kName) const;  // Pod names; empty without a host list.
  PodList Workers(const std::string& name = kName) const;              // Neither ending nor failed, by ordinal.
  PodList AllPods(const std::string& name = kName) const;              // Of a job, whatever their state.
  PodPtr LauncherPod(const std::string& name = kName) const;           // The one that runs; null if there is none.

  // The job trains with exactly these many workers, all of them ready and listed; beside them there are none.
  bool Trains(int workers, const std::string& name = kName) const;
  // No child of the job is left but those of kinds that hold nothing.
  bool HoldsNothing(const std::string& name = kName) const;

  ::testing::AssertionResult Await(const std::string& what, const std::function<bool()>& holds,
                                   kube::Duration limit = World::kLimit) const;
  ::testing::AssertionResult AwaitTrains(int workers, const std::string& name = kName) const;
  ::testing::AssertionResult Stays(const std::string& what, const std::function<bool()>& holds,
                                   kube::Duration duration) const;
  // Once nobody has written for kRest, neither the manager nor anybody in the namespace does so for `duration`.
  ::testing::AssertionResult WritesNothing(kube::Duration duration) const;

  static constexpr char kName[] = "train";
  static constexpr std::chrono::seconds kRest{5};  // What the manager writes late comes 3 s after its cause.

 private:
  static std::string CreateNode(const std::string& name, const std::string& pool, int gpus, bool has_kubelet = true);
  ::testing::AssertionResult Failure(const std::string& what) const;

  static std::unique_ptr<World> world_;
  static std::unique_ptr<ManagerProcess> manager_;
  static std::vector<std::string> nodes_;       // Deleted at the end of the suite.
  static std::vector<std::string> namespaces_;  // Deleted, perhaps not gone.

  std::string ns_;
  int node_count_ = 0;
};

// By name.
std::map<std::string, std::string> Uids(const PodList& pods);
using kit::IsBound;
using kit::IsGated;
using kit::IsReady;
using kit::IsUnschedulable;
PodList Where(const PodList& pods, bool (*predicate)(const kube::Pod&));
// True if every pod of `before` is still there with its UID.
::testing::AssertionResult AllSurvive(const PodList& before, const PodList& now);

}  // namespace grus::testing

// SPDX-License-Identifier: Apache-2.0
// Nodes whose GPUs are shared, and who gives the parts there: the kubelet's device manager and grus-node-agent.
//
// A pod that asks for thousandths gets them when it is bound: on the GPU of its plan if that has room, else on the
// fullest that has. If none has, it fails as the kubelet lets it fail. The agent writes a while later which GPU it is.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/campaign/app_workload.h"

namespace grus::testing {

class PartAgents : public std::enable_shared_from_this<PartAgents> {
 public:
  // They live as long as the world. REQUIRES: a workload is being prepared.
  static std::shared_ptr<PartAgents> Start(World& world);

  // They write nothing for so long, and do not write what they had in hand.
  void Kill(kube::Duration pause);

 private:
  struct Held {
    std::string node = {};
    std::vector<std::string> gpus = {};
    std::int64_t milli = 0;  // Of each.
  };

  explicit PartAgents(World& world) : world_(world) {}
  void Observe(const kube::testing::ServerChange& change);
  void Give(const kube::ObjectKey& key);
  // One, or as many free ones as thousands are asked for; empty: there are none.
  std::vector<std::string> ChooseGpus(const std::string& node, std::int64_t milli,
                                      const std::vector<std::string>& planned) const;
  std::int64_t LeftOn(const std::string& gpu) const;
  void Refuse(Json pod);
  void WriteSoon(const kube::ObjectKey& key);
  void Write(const kube::ObjectKey& key, int life);
  void WriteNode(const std::string& name);

  World& world_;
  std::map<std::string, Held> held_;  // By UID of the pod: the kubelet's record.
  kube::TimePoint away_until_{};
  int life_ = 0;  // Of the agents.
};

// What users and time do to a node, in any world that has agents.
void AddSharedNode(World& world, const std::string& name, int gpus);
// The kubelet starts anew, and has no parts to give before its plugin has registered again.
void RestartKubelet(World& world, const std::string& node, kube::Duration pause);
void SetSickGpu(World& world, const std::string& node, const std::string& index);  // Empty: all are well.

std::vector<std::string> PlannedGpus(const Json& pod);  // By its annotation.
bool AsksForMilli(const Json& pod);
// Invariants. No GPU has more than 1000 thousandths of pods on nodes, by their plan or, once it is written, by what
// they hold. No pod is planned onto thousandths that are planned for another one, on a node or not yet, or that another
// one has held for longer than the slack. No member of a gang is refused by a kubelet.
std::string NoPartTwice(const World& world, const kube::testing::ServerChange& change);
kube::testing::Invariant NoPlanTwice(kube::Duration slack);
std::string NoMemberIsRefused(const World& world, const kube::testing::ServerChange& change);

}  // namespace grus::testing

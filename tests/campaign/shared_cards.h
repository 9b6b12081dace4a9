// SPDX-License-Identifier: Apache-2.0
// Nodes whose GPUs are offered to lone pods in parts, and what pods have of them by their plan: from objects alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/campaign/app_workload.h"

namespace grus::testing {

// GPUs of so many GiB. `mode`: "milli" or "gpushare". No agent or kubelet looks after them: what is planned is given.
void AddCards(World& world, const std::string& name, const std::string& mode, const std::vector<int>& gibs);
// As the agent says it, of such a node; -1: all are well.
void SetSickCard(World& world, const std::string& node, int index);

// What a pod asks for, of one resource, in thousandths or GiB.
struct CardAsk {
  std::string resource = {};  // Empty: nothing of GPUs.
  std::int64_t amount = 0;
  // On each of so many GPUs.
  std::int64_t gpus() const;
  std::int64_t each() const { return amount / gpus(); }
};
CardAsk AskOf(const Json& pod);

// A GPU as its node offers it, and what is left of it by the plans of pods that are bound and have not ended.
struct Card {
  std::string node = {};
  bool is_well = true;
  std::map<std::string, std::int64_t> holds = {}, used = {};  // By resource.
  std::int64_t left(const std::string& resource) const;
};
std::map<std::string, Card> CardsOf(const World& world);  // By UUID.

// Pods of the stock scheduler. Invariants; each says on which facts it rests.
std::string NoCardOverfull(const World& world, const kube::testing::ServerChange& change);
std::string NoneBoundWithoutCard(const World& world, const kube::testing::ServerChange& change);
std::string BoundWhereItWasAsked(const World& world, const kube::testing::ServerChange& change);
std::string StaysWhereItWasSaid(const World& world, const kube::testing::ServerChange& change);
std::string NoneIsRefusedByItsKubelet(const World& world, const kube::testing::ServerChange& change);
// At rest: pods that fit, and have no node; what the scheduler complains of.
void CheckCards(const World& world, std::vector<std::string>& complaints);

}  // namespace grus::testing

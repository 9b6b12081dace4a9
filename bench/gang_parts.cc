// SPDX-License-Identifier: Apache-2.0
// Scenario that compares how soon pods with parts of GPUs and pods with whole GPUs are bound.
#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/gang_scenarios.h"
#include "bench/gang_sides.h"
#include "bench/measure.h"
#include "bench/parts/part_audit.h"
#include "bench/shared_nodes.h"
#include "controllers/policy/gpu_parts.h"
#include "crds/types/sharing_names.h"

namespace bench {
namespace {

constexpr int kSharedNodes = 100, kGpusOfNode = 8, kPods = 1000;
constexpr double kMostRatio = 1.2;

using SharedNodes = std::vector<std::shared_ptr<const kube::Node>>;

// Of every ten gangs six have members that are alike, and four have mixed ones; gangs of one take the parts by turns.
// Together they ask for 71 % of the GPUs of the shared nodes.
std::vector<GangSize> GangsOfParts(int gangs, int members) {
  static const std::vector<std::vector<int>> kParts = {
      {300}, {700}, {500}, {600, 400, 250, 750}, {800}, {250}, {900}, {300, 500, 600}, {1000, 500}, {700, 300, 650}};
  std::vector<GangSize> all = EqualGangs(gangs, members, 1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::vector<int>& parts = kParts[i % kParts.size()];
    all[i].resource = api::kGpuMilliResource;
    all[i].by_turns = parts;
    if (members == 1) all[i].by_turns = {parts[i / kParts.size() % parts.size()]};
  }
  return all;
}

// What was found in all rounds of a side.
struct Audits {
  int revisions = 0, most_gpus = 0;
  std::int64_t most_milli = 0;
  std::size_t faults = 0;
};

// Looks at all revisions since the last Record().
bool Audit(const GangWorld& world, const SharedNodes& nodes, std::uint64_t lists_before, Audits& audits) {
  PartAudit audit;
  for (const auto& node : nodes) audit.PutNode(*node);
  while (const auto event = world.observer.Next(world.clock.Now())) {
    if (!event->pod) continue;
    if (event->is_gone) audit.RemovePod(*event->pod);
    else audit.PutPod(*event->pod);
  }
  world.observer.Record("");
  for (std::size_t i = 0; i < std::min<std::size_t>(audit.faults().size(), 5); ++i) {
    std::fprintf(stderr, "%s\n", audit.faults()[i].c_str());
  }
  audits.revisions += audit.revisions();
  audits.most_gpus = std::max(audits.most_gpus, audit.used_gpus());
  audits.most_milli = std::max(audits.most_milli, audit.most_milli());
  audits.faults += audit.faults().size();
  if (world.observer.pod_lists() == lists_before) return true;
  std::fprintf(stderr, "pods were listed again: revisions may have been missed\n");
  return false;
}

double Most(const std::vector<double>& values) { return *std::ranges::max_element(values); }

void PrintBound(const Side& side) {
  std::printf("%-58s %9.3f s, at most %.3f s; created %.3f s\n", (side.name + ": all pods bound").c_str(),
              Median(side.bound), Most(side.bound), Median(side.created));
  PrintRow(side.name + ": grus-manager: CPU", Median(side.cpu), "s");
  PrintRow(side.name + ": grus-manager: peak memory", Median(side.memory), "MiB");
  PrintRow(side.name + ": grus-manager: writes a pod", Median(side.writes), "");
}

double MedianBoundRatio(const Side& side, const Side& base) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < side.bound.size(); ++i) ratios.push_back(side.bound[i] / base.bound[i]);
  return Median(std::move(ratios));
}

// False: a part did not finish, or a GPU was given twice.
bool CompareParts(const GangWorld& world, const SharedNodes& nodes, int members, int rounds) {
  const int gangs = kPods / members;
  Audits audits;
  std::uint64_t lists = 0;
  Side parts = GangSide(world, "parts of GPUs", "auto", GangsOfParts(gangs, members));
  parts.create = [&, create = std::move(parts.create)](const std::string& ns) {
    lists = world.observer.pod_lists();
    world.observer.Record(ns);
    return create(ns);
  };
  parts.check = [&](const std::string&) { return Audit(world, nodes, lists, audits); };
  const std::vector<GangSize> whole = EqualGangs(gangs, members, 1);
  std::vector<Side> sides = {GangSide(world, "whole GPUs", "auto", whole), std::move(parts),
                             GangSide(world, "whole GPUs, always held", "always", whole)};
  if (!Compare(world, sides, kPods, rounds, "parts-" + std::to_string(members))) return false;
  std::printf("\n%d gangs of %d: parts of the GPUs of %d nodes of %d, against whole GPUs; medians of %d rounds\n",
              gangs, members, kSharedNodes, kGpusOfNode, rounds);
  for (const Side& side : sides) PrintBound(side);
  PrintRow("parts of GPUs: ratio", MedianBoundRatio(sides[1], sides[0]), "x", kMostRatio);
  PrintRow("parts of GPUs: ratio to whole GPUs, always held", MedianBoundRatio(sides[1], sides[2]), "x");
  std::printf("%d revisions of pods with parts, on up to %d GPUs\n", audits.revisions, audits.most_gpus);
  PrintRow("most thousandths of one GPU at any revision", static_cast<double>(audits.most_milli), "", 1000);
  PrintRow("pods bound without a GPU of their node, or beyond it", static_cast<double>(audits.faults), "", 0);
  std::fflush(stdout);
  return audits.faults == 0 && audits.most_milli > 0;
}

}  // namespace

bool RunParts(const GangWorld& world, int rounds) {
  const auto nodes = ShareGpus(world.client, kGpusOfNode);
  if (!nodes) {
    std::fprintf(stderr, "%s\n", nodes.error().message().c_str());
    return false;
  }
  if (nodes->size() != kSharedNodes) {
    std::fprintf(stderr, "%zu nodes share their GPUs; %d must\n", nodes->size(), kSharedNodes);
    return false;
  }
  if (!WarmUp(world)) return false;
  const bool is_right = CompareParts(world, *nodes, 8, rounds);
  return CompareParts(world, *nodes, 1, rounds) && is_right;
}

}  // namespace bench

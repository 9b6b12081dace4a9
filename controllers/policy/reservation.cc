// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/reservation.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace grus {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// How many copies fit on a node from when on.
struct Outlook {
  struct Step {
    std::int64_t at;
    int copies;
  };
  NodeId id;
  std::vector<Step> steps;  // Ascending in both.
  std::int64_t free_gpus;

  int CopiesAt(std::int64_t time) const {
    int copies = 0;
    for (const Step& step : steps) {
      if (step.at <= time) copies = step.copies;
    }
    return copies;
  }
  std::int64_t ReadyFor(int copies) const {
    const auto step = std::find_if(steps.begin(), steps.end(), [copies](const Step& s) { return s.copies >= copies; });
    return step->at;
  }
};

class Search {
 public:
  Search(const ClusterLedger& ledger, const GangToPlace& gang, const std::vector<std::int64_t>& ends, std::int64_t now)
      : ledger_(ledger), gang_(gang), ends_(ends), now_(now) {}

  Reservation Run() {
    std::int64_t start = now_;
    for (const GangPart& part : *gang_.parts) {
      const int count = part.CountBelow(gang_.needed);
      if (count > 0) start = std::max(start, Reserve(part, count));
    }
    if (start != kNever) result_.start = start;
    return std::move(result_);
  }

 private:
  std::int64_t EndOf(OwnerId owner) const {
    // Who is over its time has shown that the time said nothing.
    return owner < ends_.size() && ends_[owner] > now_ ? ends_[owner] : kNever;
  }

  Outlook LookAt(const LedgerNode& node, const FitIndex& index, int most_on_node) const {
    Outlook outlook{node.id, {}, 0};
    outlook.free_gpus = node.state.allocatable.Extended(kGpuResource) - node.used.Extended(kGpuResource);
    Resources taken = node.used;
    if (const auto mine = result_.nodes.find(node.id); mine != result_.nodes.end()) taken += mine->second;
    const auto add = [&](std::int64_t at) {
      const int copies = std::min(most_on_node, index.CopiesOn(node.id, taken));
      if (outlook.steps.empty() || outlook.steps.back().copies < copies) outlook.steps.push_back({at, copies});
    };
    add(now_);
    std::vector<std::pair<std::int64_t, const NodeHolder*>> leaving;
    for (const NodeHolder& holder : node.by_owner) leaving.emplace_back(EndOf(holder.owner), &holder);
    std::sort(leaving.begin(), leaving.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < leaving.size(); ++i) {
      taken -= leaving[i].second->held;
      if (i + 1 == leaving.size() || leaving[i + 1].first != leaving[i].first) add(leaving[i].first);
    }
    return outlook;
  }

  std::int64_t Reserve(const GangPart& part, int count) {
    const FitIndex& index = *part.index;
    const int most = MostOnOneNode(*(*gang_.members)[static_cast<std::size_t>(part.members.front())]);
    std::vector<Outlook> nodes;
    for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
      if (!index.IsEligible(id) || std::find(gang_.avoid.begin(), gang_.avoid.end(), id) != gang_.avoid.end()) continue;
      nodes.push_back(LookAt(*ledger_.NodeAt(id), index, most));
    }
    const std::int64_t start = StartOf(nodes, count);
    // Nodes that are ready first, then those with the most room; the rest of the cluster stays free for others. Which
    // of those with an unknown end is ready first nobody knows: the one with the most free now is the nearest to it.
    using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, NodeId>;
    std::vector<std::pair<Key, int>> order;
    for (const Outlook& node : nodes) {
      const int copies = node.CopiesAt(start);
      if (copies == 0) continue;
      const std::int64_t ready = node.ReadyFor(copies);
      Key key{ready, -copies, -node.free_gpus, node.id};
      if (ready == kNever) std::swap(std::get<1>(key), std::get<2>(key));
      order.emplace_back(key, copies);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [key, copies] : order) {
      const int here = std::min(copies, count);
      Resources& reserved = result_.nodes[std::get<3>(key)];
      for (int i = 0; i < here; ++i) reserved += index.shape().request;
      count -= here;
      if (count == 0) break;
    }
    return start;
  }

  std::int64_t StartOf(const std::vector<Outlook>& nodes, int count) const {
    std::vector<Outlook::Step> gains;
    for (const Outlook& node : nodes) {
      int before = 0;
      for (const Outlook::Step& step : node.steps) {
        if (step.copies > before) gains.push_back({step.at, step.copies - before});
        before = step.copies;
      }
    }
    std::sort(gains.begin(), gains.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
    for (const Outlook::Step& gain : gains) {
      count -= gain.copies;
      if (count <= 0) return gain.at;
    }
    return kNever;
  }

  const ClusterLedger& ledger_;
  const GangToPlace& gang_;
  const std::vector<std::int64_t>& ends_;
  const std::int64_t now_;
  Reservation result_;
};

}  // namespace

int MostOnOneNode(const PodShape& shape) {
  constexpr int kAny = std::numeric_limits<int>::max();
  for (const kube::PodAffinityTerm& term : shape.anti_affinity) {
    if (term.topology_key == "kubernetes.io/hostname" && TermMatches(term, shape.ns, shape, false)) return 1;
  }
  return shape.host_ports.empty() ? kAny : 1;
}

Reservation FindReservation(const ClusterLedger& ledger, const GangToPlace& gang, const std::vector<std::int64_t>& ends,
                            std::int64_t now) {
  return Search(ledger, gang, ends, now).Run();
}

}  // namespace grus

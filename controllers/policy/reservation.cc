// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/reservation.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "controllers/policy/fill.h"
#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/owner_names.h"

namespace grus {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// From `at` on, `copies` fit on a node.
struct Step {
  std::int64_t at;
  int copies;
};

struct Outlook {
  NodeId id;
  std::int64_t free_devices;
  std::size_t begin, end;  // Its steps, ascending in time and copies; at least one.
};

class Search {
 public:
  Search(const ClusterLedger& ledger, const GangToPlace& gang, const std::vector<std::int64_t>& ends, std::int64_t now,
         bool names_gpus)
      : ledger_(ledger), gang_(gang), ends_(ends), now_(now), names_gpus_(names_gpus) {}

  Reservation Run() {
    std::int64_t start = now_;
    for (const GangPart& part : *gang_.parts) {
      const int count = part.CountBelow(gang_.needed);
      if (count == 0) continue;
      const std::optional<std::int64_t> at = Reserve(part, count);
      if (!at) return {};
      start = std::max(start, *at);
    }
    if (start != kNever) result_.start = start;
    return std::move(result_);
  }

 private:
  std::int64_t EndOf(OwnerId owner) const {
    // An owner past its expected end may stay for any time.
    return owner < ends_.size() && ends_[owner] > now_ ? ends_[owner] : kNever;
  }

  // Appends to steps_ and outlooks_.
  void LookAt(const LedgerNode& node, const FitIndex& index, int most_on_node) {
    const std::size_t begin = steps_.size();
    const auto add = [&](std::int64_t at, int copies) {
      copies = std::min(most_on_node, copies);
      if (steps_.size() == begin || steps_.back().copies < copies) steps_.push_back({at, copies});
    };
    const auto mine = result_.nodes.find(node.id);
    Resources kept;  // For others, and for other kinds of members.
    leaving_.clear();
    for (const NodeUse& use : node.by_owner) {
      const std::int64_t end = EndOf(use.owner);
      if (end != kNever) leaving_.emplace_back(end, &use);
    }
    if (leaving_.empty() && mine == result_.nodes.end() && node.reserved.pods == 0) {  // Most nodes, and cheap.
      add(now_, index.CopiesOn(node.id));
    } else {
      kept = node.ReservedBut(gang_.may_use);
      if (mine != result_.nodes.end()) kept += mine->second;
      taken_ = node.used;
      taken_ += kept;
      add(now_, index.CopiesOn(node.id, taken_));
      std::ranges::sort(leaving_, {}, &std::pair<std::int64_t, const NodeUse*>::first);
      for (std::size_t i = 0; i < leaving_.size(); ++i) {
        taken_ -= leaving_[i].second->held;
        const bool is_last_then = i + 1 == leaving_.size() || leaving_[i + 1].first != leaving_[i].first;
        if (is_last_then) add(leaving_[i].first, index.CopiesOn(node.id, taken_));
      }
    }
    add(kNever, kept.pods == 0 ? index.CapacityOf(node.id) : index.CopiesOn(node.id, kept));
    // The index counts reserved devices as taken.
    std::int64_t free_devices = -index.RankOf(node.id).fullness;
    if (gang_.may_use != nullptr) {
      const auto own = gang_.may_use->find(node.id);
      if (own != gang_.may_use->end()) free_devices += own->second.Extended(index.device());
    }
    outlooks_.push_back({node.id, free_devices, begin, steps_.size()});
  }

  // The step that holds at that time.
  Step At(const Outlook& node, std::int64_t time) const {
    Step last = steps_[node.begin];
    for (std::size_t i = node.begin + 1; i < node.end && steps_[i].at <= time; ++i) last = steps_[i];
    return last;
  }

  // When that many members of the part can start; nullopt: never.
  std::optional<std::int64_t> Reserve(const GangPart& part, int count) {
    const FitIndex& index = *part.index;
    const int most = MostOnOneNode(*(*gang_.members)[static_cast<std::size_t>(part.members.front())]);
    // It fits now, beside what is reserved for the other kinds: no need to look at every node.
    const auto others = static_cast<std::int64_t>(result_.nodes.size() + gang_.avoid.size());
    if (most > count && index.copies() - others * index.largest_capacity() >= count) {
      FitOverrides overrides;
      for (const auto& [id, amount] : result_.nodes) overrides[id] = 0;
      for (const NodeId id : gang_.avoid) overrides[id] = 0;
      for (const auto& [id, copies] : Fill(index, overrides, count, part.PlacementIn(gang_))) Add(id, index, copies);
      return now_;
    }
    steps_.clear();
    outlooks_.clear();
    for (NodeId id = 0; id < ledger_.node_limit(); ++id) {
      if (!index.IsEligible(id) || std::ranges::find(gang_.avoid, id) != gang_.avoid.end()) continue;
      LookAt(*ledger_.NodeAt(id), index, most);
    }
    const std::int64_t start = StartOf(count);
    // Nodes that are ready first, then those with the most room; the rest of the cluster stays free for others. Of
    // nodes with an unknown end take those with the most free devices now: they are likely to be ready first.
    struct Candidate {
      std::tuple<std::int64_t, std::int64_t, std::int64_t, NodeId> key;
      int copies;
    };
    std::vector<Candidate> heap;
    for (const Outlook& node : outlooks_) {
      const auto [ready, copies] = At(node, start);
      if (copies == 0) continue;
      const std::int64_t by_room = -copies, by_devices = -node.free_devices;
      if (ready == kNever) heap.push_back({{ready, by_devices, by_room, node.id}, copies});
      else heap.push_back({{ready, by_room, by_devices, node.id}, copies});
    }
    const auto is_later = [](const Candidate& x, const Candidate& y) { return x.key > y.key; };
    std::make_heap(heap.begin(), heap.end(), is_later);  // Cheaper than sorting: few are needed.
    for (; !heap.empty(); heap.pop_back()) {
      std::pop_heap(heap.begin(), heap.end(), is_later);
      const int here = std::min(heap.back().copies, count);
      Add(std::get<3>(heap.back().key), index, here);
      count -= here;
      if (count == 0) return start;
    }
    return std::nullopt;
  }

  // Those that are whole already, if it waits for several: by preference.
  static std::string FreeGpusOf(const Resources& allocatable, const Resources& taken) {
    std::vector<std::string_view> free;
    ForEachFreeGpu(allocatable, taken, [&](std::string_view gpu, std::int64_t milli) {
      if (milli >= kWholeDevice) free.push_back(gpu);
    });
    return GpuListOf(free);
  }

  void Add(NodeId id, const FitIndex& index, int copies) {
    const PodShape& shape = index.shape();
    const LedgerNode& node = *ledger_.NodeAt(id);
    Resources& reserved = result_.nodes[id];
    for (int i = 0; i < copies; ++i) {
      if (!IsOnGpus(shape.request)) {
        reserved += shape.request;
        continue;
      }
      // Best where there is room now; else where there will be.
      Resources kept = node.ReservedBut(gang_.may_use), taken = node.used;
      kept += reserved;
      taken += kept;
      std::string gpu = names_gpus_ ? node.GpuFor(shape, taken) : std::string();
      if (gpu.empty() && names_gpus_) gpu = node.GpuFor(shape, kept, FreeGpusOf(node.state.allocatable, taken));
      reserved += OnGpu(shape.request, gpu);
    }
  }

  std::int64_t StartOf(int count) {
    for (const Outlook& node : outlooks_) count -= steps_[node.begin].copies;
    if (count <= 0) return now_;
    std::vector<Step> gains;
    for (const Outlook& node : outlooks_) {
      for (std::size_t i = node.begin + 1; i < node.end; ++i) {
        if (steps_[i].at != kNever) gains.push_back({steps_[i].at, steps_[i].copies - steps_[i - 1].copies});
      }
    }
    std::ranges::sort(gains, {}, &Step::at);
    for (const Step& gain : gains) {
      count -= gain.copies;
      if (count <= 0) return gain.at;
    }
    return kNever;
  }

  const ClusterLedger& ledger_;
  const GangToPlace& gang_;
  const std::vector<std::int64_t>& ends_;
  const std::int64_t now_;
  const bool names_gpus_;  // Of which parts are reserved.
  Reservation result_;
  std::vector<Step> steps_;
  std::vector<Outlook> outlooks_;
  // Of LookAt(); members, so that their memory is reused.
  std::vector<std::pair<std::int64_t, const NodeUse*>> leaving_;
  Resources taken_;
};

}  // namespace

const ReservationTurns::Turn& ReservationTurns::LastOf(std::string_view gang, std::int64_t now) const {
  static const Turn kNone;
  const auto it = turns_.find(NamespaceOf(gang));
  return it == turns_.end() || it->second.IsForgotten(now) ? kNone : it->second;
}

std::int64_t ReservationTurns::LengthFor(std::string_view gang, std::int64_t now) const {
  const Turn& last = LastOf(gang, now);
  return last.gang == gang ? std::min(2 * last.length, kLongest) : kFirst;
}

void ReservationTurns::End(const std::string& gang, std::int64_t length, std::int64_t now) {
  std::erase_if(turns_, [now](const auto& turn) { return turn.second.IsForgotten(now); });
  turns_[std::string(NamespaceOf(gang))] = {gang, length, now + length};
}

void ReservationTurns::Started(std::string_view gang) {
  const auto turn = turns_.find(NamespaceOf(gang));
  if (turn != turns_.end() && turn->second.gang == gang) turns_.erase(turn);
}

int MostOnOneNode(const PodShape& shape) {
  constexpr int kAny = std::numeric_limits<int>::max();
  for (const kube::PodAffinityTerm& term : shape.anti_affinity) {
    if (term.topology_key == "kubernetes.io/hostname" && TermMatches(term, shape.ns, shape, false)) return 1;
  }
  return shape.host_ports.empty() ? kAny : 1;
}

Reservation FindReservation(const ClusterLedger& ledger, const GangToPlace& gang, const std::vector<std::int64_t>& ends,
                            std::int64_t now) {
  Reservation found = Search(ledger, gang, ends, now, true).Run();
  // With several kinds, the GPUs of the first may be those that only others can use.
  return found.nodes.empty() ? Search(ledger, gang, ends, now, false).Run() : found;
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/fill.h"

#include <algorithm>

namespace grus {
namespace {

// Do not spread a gang over more partly used nodes than this to save a whole one.
constexpr int kMostPieces = 4;

// The buckets of an index, with the overrides worked in; ascending.
class Shelves {
 public:
  struct Shelf {
    FitRank rank;
    const std::vector<NodeId>* nodes;
    bool is_override;
    std::size_t next = 0;  // The nodes before it are taken or do not count.
  };

  Shelves(const FitIndex& index, const FitOverrides& overrides) : overrides_(overrides) {
    for (const auto& [id, copies] : overrides) {
      if (copies <= 0 || !index.IsEligible(id)) continue;
      FitRank rank = index.RankOf(id);
      rank.copies = copies;
      extra_[rank].push_back(id);
    }
    for (auto& [rank, nodes] : extra_) std::sort(nodes.begin(), nodes.end());  // Hash order must not matter.
    for (const auto& [rank, nodes] : index.buckets()) {
      if (!nodes.empty()) shelves_.push_back({rank, &nodes, false});
    }
    if (extra_.empty()) return;
    for (const auto& [rank, nodes] : extra_) shelves_.push_back({rank, &nodes, true});
    std::stable_sort(shelves_.begin(), shelves_.end(), [](const Shelf& a, const Shelf& b) { return a.rank < b.rank; });
  }

  std::vector<Shelf>& all() { return shelves_; }

  // The next node of the shelf from `at` on; null: none is left.
  const NodeId* At(const Shelf& shelf, std::size_t& at) const {
    for (; at < shelf.nodes->size(); ++at) {
      const NodeId& id = (*shelf.nodes)[at];
      if (shelf.is_override || overrides_.empty() || !overrides_.contains(id)) return &id;
    }
    return nullptr;
  }
  const NodeId* First(Shelf& shelf) const { return At(shelf, shelf.next); }

 private:
  const FitOverrides& overrides_;
  FitIndex::Buckets extra_;
  std::vector<Shelf> shelves_;
};

using Filled = std::vector<std::pair<NodeId, int>>;

// Up to kMostPieces partly used nodes of that tier, below `end`, that together hold `count` copies. Empty: none do.
Filled Pieces(const FitIndex& index, Shelves& shelves, std::size_t end, int tier, int count) {
  Filled pieces;
  for (std::size_t i = end; i-- > 0 && shelves.all()[i].rank.tier == tier;) {
    const Shelves::Shelf& shelf = shelves.all()[i];
    if (shelf.rank.copies >= count && pieces.empty()) continue;
    std::size_t at = shelf.next;
    for (const NodeId* id = shelves.At(shelf, at); id; id = shelves.At(shelf, ++at)) {
      if (index.IsWhole(*id)) break;  // Then all of this rank are whole, but for overridden ones.
      pieces.emplace_back(*id, std::min(count, shelf.rank.copies));
      count -= pieces.back().second;
      if (count == 0) return pieces;
      if (pieces.size() == kMostPieces) return {};
    }
  }
  return {};
}

// The shelf below `end`, of the tier, with the tightest node that holds all `count` copies; null: no node does.
Shelves::Shelf* Tightest(Shelves& shelves, std::size_t end, int tier, int count) {
  Shelves::Shelf* best = nullptr;
  for (std::size_t i = 0; i < end; ++i) {
    Shelves::Shelf& shelf = shelves.all()[i];
    if (shelf.rank.tier != tier || shelf.rank.copies < count) continue;
    if (best && shelf.rank.copies > best->rank.copies) break;
    if (shelves.First(shelf)) best = &shelf;  // Later ones with as many copies are fuller.
  }
  return best;
}

// Each copy goes to the node that is then the freest.
Filled Spread(const FitIndex& index, const FitOverrides& overrides, int count) {
  struct Node : Freeness {
    int placed = 0;
  };
  std::vector<Node> nodes;
  Shelves shelves(index, overrides);
  for (const Shelves::Shelf& shelf : shelves.all()) {
    std::size_t at = 0;
    for (const NodeId* id = shelves.At(shelf, at); id; id = shelves.At(shelf, ++at)) {
      nodes.push_back({{*id, shelf.rank.copies, index.CapacityOf(*id), shelf.rank.fullness}});
    }
  }
  const auto comes_later = [](const Node& a, const Node& b) { return IsFreer(b, a); };
  std::make_heap(nodes.begin(), nodes.end(), comes_later);
  Filled filled;
  std::vector<Node> used_up;
  for (; count > 0; --count) {
    std::pop_heap(nodes.begin(), nodes.end(), comes_later);
    ++nodes.back().placed;
    if (--nodes.back().copies > 0) {
      std::push_heap(nodes.begin(), nodes.end(), comes_later);
    } else {
      used_up.push_back(nodes.back());
      nodes.pop_back();
    }
  }
  nodes.insert(nodes.end(), used_up.begin(), used_up.end());
  std::ranges::sort(nodes, {}, &Node::id);  // The order of the heap must not matter.
  for (const Node& node : nodes) {
    if (node.placed > 0) filled.emplace_back(node.id, node.placed);
  }
  return filled;
}

}  // namespace

bool IsFreer(const Freeness& a, const Freeness& b) {
  const std::int64_t of_a = a.copies * b.capacity, of_b = b.copies * a.capacity;
  if (of_a != of_b) return of_a > of_b;
  return a.fullness != b.fullness ? a.fullness < b.fullness : a.id < b.id;
}

std::int64_t CopiesWith(const FitIndex& index, const FitOverrides& overrides) {
  std::int64_t copies = index.copies();
  for (const auto& [id, instead] : overrides) {
    if (index.IsEligible(id)) copies += instead - index.CopiesOn(id);
  }
  return copies;
}

Filled Fill(const FitIndex& index, const FitOverrides& overrides, int count, PoolPlacement placement) {
  Filled filled;
  if (count <= 0 || CopiesWith(index, overrides) < count) return filled;
  if (placement == PoolPlacement::kSpread) return Spread(index, overrides, count);
  Shelves shelves(index, overrides);
  for (std::size_t end = shelves.all().size(); end > 0 && count > 0;) {
    Shelves::Shelf& top = shelves.all()[end - 1];
    const NodeId* id = shelves.First(top);
    if (!id) {
      --end;
      continue;
    }
    if (top.rank.copies <= count) {  // Fill the node.
      filled.emplace_back(*id, top.rank.copies);
      count -= top.rank.copies;
      ++top.next;
      continue;
    }
    Shelves::Shelf* tightest = Tightest(shelves, end, top.rank.tier, count);  // `top` if nothing else.
    const NodeId last = *shelves.First(*tightest);
    Filled pieces;
    if (index.IsWhole(last)) pieces = Pieces(index, shelves, end, top.rank.tier, count);
    if (pieces.empty()) pieces.emplace_back(last, count);
    filled.insert(filled.end(), pieces.begin(), pieces.end());
    count = 0;
  }
  return filled;
}

std::vector<NodeId> InOrder(const FitIndex& index, const FitOverrides& overrides, int count) {
  std::vector<NodeId> order, smaller;
  Shelves shelves(index, overrides);
  const auto append = [&](const Shelves::Shelf& shelf, std::vector<NodeId>& to) {
    std::size_t at = 0;
    for (const NodeId* id = shelves.At(shelf, at); id; id = shelves.At(shelf, ++at)) to.push_back(*id);
  };
  for (const int tier : {1, 0}) {
    for (const Shelves::Shelf& shelf : shelves.all()) {
      if (shelf.rank.tier == tier && shelf.rank.copies >= count) append(shelf, order);
    }
    for (auto shelf = shelves.all().rbegin(); shelf != shelves.all().rend(); ++shelf) {
      if (shelf->rank.tier == tier && shelf->rank.copies < count) append(*shelf, order);
    }
  }
  return order;
}

}  // namespace grus

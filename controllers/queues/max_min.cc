// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/max_min.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "clientlib/model/quantity.h"

namespace grus {
namespace {

using kube::Wide;

struct Remainder {
  Wide size = 0;
  std::size_t item = 0;
};

// Divides `amount` in proportion to the weights of these items.
void Divide(std::int64_t amount, std::span<const MaxMinItem> items, std::span<const std::size_t> among,
            std::vector<std::int64_t>& gets) {
  Wide weights = 0;
  for (const std::size_t i : among) weights += items[i].weight;
  std::vector<Remainder> remainders;
  remainders.reserve(among.size());
  std::int64_t left = amount;
  for (const std::size_t i : among) {
    const Wide product = Wide{amount} * items[i].weight;
    gets[i] = static_cast<std::int64_t>(product / weights);
    left -= gets[i];
    remainders.push_back({product % weights, i});
  }
  std::ranges::sort(remainders, [](const Remainder& a, const Remainder& b) {
    return a.size != b.size ? a.size > b.size : a.item < b.item;
  });
  // Only items with a remainder get one more, so that none exceeds the integer that is the most for it.
  for (std::size_t i = 0; left > 0; ++i, --left) ++gets[remainders[i].item];
}

}  // namespace

std::vector<std::int64_t> MaxMin(std::int64_t amount, std::span<const MaxMinItem> items) {
  std::vector<std::int64_t> gets(items.size(), 0);
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return items[i].most <= 0; });
  // The vessel that is full at the lowest level first.
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const Wide left = Wide{items[a].most} * items[b].weight, right = Wide{items[b].most} * items[a].weight;
    return left != right ? left < right : a < b;
  });
  Wide weights = 0;
  for (const std::size_t i : order) weights += items[i].weight;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const MaxMinItem& item = items[order[at]];
    if (Wide{item.most} * weights > Wide{amount} * item.weight) {
      Divide(amount, items, std::span(order).subspan(at), gets);
      break;
    }
    gets[order[at]] = item.most;
    amount -= item.most;
    weights -= item.weight;
  }
  return gets;
}

}  // namespace grus

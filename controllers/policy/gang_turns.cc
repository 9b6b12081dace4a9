// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gang_turns.h"

namespace grus {

GangTurns::GangTurns(ClusterQueues& queues, std::span<const Entry> entries) : queues_(queues), entries_(entries) {
  if (!queues.is_active()) return;
  order_.emplace(queues.use());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].queue != kNoQueue) lines_[entries[i].queue].entries.push_back(i);
  }
  for (const auto& [queue, line] : lines_) order_->SetFirst(queue, entries[line.entries.front()].needs);
}

std::optional<std::size_t> GangTurns::Next() {
  if (!order_) return at_ < entries_.size() ? std::optional(at_) : std::nullopt;
  const QueueIndex queue = order_->Next();
  if (queue == kNoQueue) return std::nullopt;
  const Line& line = lines_.at(queue);
  return line.entries[line.at];
}

void GangTurns::Tried(std::size_t entry, bool is_placed) {
  if (!order_) {
    ++at_;
    return;
  }
  const QueueIndex queue = entries_[entry].queue;
  Line& line = lines_.at(queue);
  ++line.at;
  const bool is_blocked =
      !is_placed && entries_[entry].may_block && queues_.tree().At(queue).order == QueueOrder::kStrictFifo;
  if (line.at == line.entries.size() || is_blocked) order_->Remove(queue);
  else order_->SetFirst(queue, entries_[line.entries[line.at]].needs);
  if (is_placed) order_->Update(queue);
}

}  // namespace grus

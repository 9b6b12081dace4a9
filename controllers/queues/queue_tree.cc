// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/queue_tree.h"

#include "controllers/queues/queue_tree_builder.h"

namespace grus {

QueueTree QueueTree::Build(std::span<const QueueSpec> specs, std::span<const PoolSize> pools) {
  return QueueTreeBuilder(specs, pools).Build();
}

QueueIndex QueueTree::Find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNoQueue : found->second;
}

PoolIndex QueueTree::FindPool(std::string_view name) const {
  const auto found = pools_by_name_.find(name);
  return found == pools_by_name_.end() ? kNoPool : found->second;
}

bool QueueTree::IsWithin(QueueIndex queue, QueueIndex above) const {
  while (At(queue).level > At(above).level) queue = ParentOf(queue);
  return queue == above;
}

}  // namespace grus

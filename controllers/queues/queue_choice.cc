// SPDX-License-Identifier: Apache-2.0
#include "controllers/queues/queue_choice.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;

// In the order of the tree, without queues that have a selected one below them.
std::vector<QueueIndex> LowestOf(const QueueTree& tree, std::span<const std::string> names) {
  std::vector<QueueIndex> queues;
  for (const std::string& name : names) {
    if (const QueueIndex queue = tree.Find(name); queue != kNoQueue) queues.push_back(queue);
  }
  std::ranges::sort(queues);
  queues.erase(std::unique(queues.begin(), queues.end()), queues.end());
  const std::vector<QueueIndex> all = queues;
  std::erase_if(queues, [&](QueueIndex above) {
    return std::ranges::any_of(all, [&](QueueIndex queue) { return queue != above && tree.IsWithin(queue, above); });
  });
  return queues;
}

std::string Names(const QueueTree& tree, std::span<const QueueIndex> queues) {
  std::string text;
  for (std::size_t i = 0; i < queues.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == queues.size() ? " and " : ", ") + tree.NameOf(queues[i]);
  }
  return text;
}

}  // namespace

kube::Result<QueueIndex> QueueOf(const QueueTree& tree, const QueueWish& wish) {
  const std::string ns(wish.ns);
  if (!wish.queue_name.empty()) {
    const std::string name(wish.queue_name);
    const QueueIndex queue = tree.Find(name);
    if (queue == kNoQueue) {
      return Error(ErrorCode::kNotFound, "there is no queue " + name + ": create it, or change queueName");
    }
    if (tree.At(queue).selects_namespaces && std::ranges::find(wish.selected_by, name) == wish.selected_by.end()) {
      return Error(ErrorCode::kForbidden, "the queue " + name + " is not for namespace " + ns +
                                              ": change queueName, or the queue's namespaceSelector");
    }
    return queue;
  }
  const std::vector<QueueIndex> queues = LowestOf(tree, wish.selected_by);
  if (queues.empty()) return tree.default_queue();
  if (queues.size() == 1) return queues.front();
  return Error(ErrorCode::kConflict, "the queues " + Names(tree, queues) + " select namespace " + ns +
                                         ": set queueName to one of them, or change their namespaceSelectors");
}

std::vector<QueueFault> NamespacesInTwoQueues(const QueueTree& tree, const std::vector<SelectedNamespace>& namespaces) {
  std::vector<QueueFault> faults;
  for (const SelectedNamespace& selected : namespaces) {
    const std::vector<QueueIndex> queues = LowestOf(tree, selected.selected_by);
    if (queues.size() < 2) continue;
    for (const QueueIndex queue : queues) {
      std::vector<QueueIndex> others = queues;
      std::erase(others, queue);
      faults.push_back({tree.NameOf(queue), "spec.namespaceSelector", QueueFaultKind::kNamespaceInTwoQueues,
                        "namespace " + selected.ns + " is also selected by " + Names(tree, others) +
                            ": change one selector; until then its jobs that name no queue wait"});
    }
  }
  std::ranges::sort(faults, [](const QueueFault& a, const QueueFault& b) {
    return std::tie(a.queue, a.message) < std::tie(b.queue, b.message);
  });
  return faults;
}

}  // namespace grus

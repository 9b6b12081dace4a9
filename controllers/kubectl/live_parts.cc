// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/live_parts.h"

#include <utility>

#include "controllers/kubectl/top_parts.h"

namespace grus {
namespace {

constexpr int kPage = 1000;

// Follows the pages of a long list.
template <typename T>
kube::Result<std::vector<std::shared_ptr<const T>>> ListAll(kube::Client& client, const std::string& ns,
                                                            const std::string& field_selector) {
  std::vector<std::shared_ptr<const T>> objects;
  kube::ListOptions options;
  options.field_selector = field_selector;
  options.limit = kPage;
  do {
    const auto page = client.List(kube::KindOf<T>(), ns, options);
    if (!page) return kube::Error(page.error()).with("list " + std::string(kube::KindOf<T>().plural));
    for (const auto& item : page->items) objects.push_back(std::static_pointer_cast<const T>(item));
    options.continue_token = page->continue_token;
  } while (!options.continue_token.empty());
  return objects;
}

constexpr char kNotEnded[] = "status.phase!=Succeeded,status.phase!=Failed";

// The pods of all namespaces, so that it is known what is free; at least those of the namespace.
kube::Status ReadPods(kube::Client& client, PartsView& view, std::vector<std::string>& notes) {
  auto pods = ListAll<PartPod>(client, "", kNotEnded);
  if (!pods && !view.ns.empty() && pods.error().code() == kube::ErrorCode::kForbidden) {
    notes.push_back("what is free is not known: " + pods.error().message());
    view.has_all_pods = false;
    pods = ListAll<PartPod>(client, view.ns, kNotEnded);
  }
  if (!pods) return pods.error();
  view.pods = *std::move(pods);
  return {};
}

// Of the agents' namespace, from what is known already if that is all.
kube::Result<std::vector<std::shared_ptr<const PartPod>>> ReadAgents(kube::Client& client, const PartsView& view,
                                                                     const std::string& system_ns) {
  if (!view.has_all_pods) return ListAll<PartPod>(client, system_ns, kNotEnded);
  std::vector<std::shared_ptr<const PartPod>> pods;
  for (const auto& pod : view.pods) {
    if (pod->metadata.ns == system_ns) pods.push_back(pod);
  }
  return pods;
}

}  // namespace

kube::Result<TopPartsAnswer> TopParts(kube::Client& client, kube::Client& agents, const TopPartsOptions& options,
                                      const kube::Clock& clock) {
  TopPartsAnswer answer;
  PartsView view;
  view.ns = options.ns;
  if (const kube::Status read = ReadPods(client, view, answer.notes); !read) return read.error();
  auto nodes = ListAll<kube::Node>(client, "", "");
  if (nodes) view.nodes = *std::move(nodes);
  else answer.notes.push_back("the GPUs of nodes are not known: " + nodes.error().message());

  const std::vector<std::string> names = NodesWithParts(view);
  if (!names.empty()) {
    const auto pods = ReadAgents(client, view, options.system_ns);
    if (pods) {
      AgentAnswers answers = AskAgents(agents, *pods, names, clock);
      view.uses = std::move(answers.uses);
      if (!answers.problem.empty()) answer.notes.push_back(std::move(answers.problem));
    } else {
      answer.notes.push_back("what is used is not known: " + pods.error().message());
    }
  }
  answer.table = TopPartsText(view);
  return answer;
}

}  // namespace grus

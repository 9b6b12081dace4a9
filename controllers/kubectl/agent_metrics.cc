// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/agent_metrics.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "clientlib/http/url.h"

namespace grus {
namespace {

constexpr std::size_t kAtOnce = 32;
constexpr std::int32_t kPort = 8080;  // Of the chart.

std::int32_t MetricsPort(const PartPod& pod) {
  for (const ContainerOfPod& container : pod.spec.containers) {
    for (const PortOfPod& port : container.ports) {
      if (port.name == "metrics") return port.container_port;
    }
  }
  return kPort;
}

std::string MetricsPath(const PartPod& pod) {
  return "/api/v1/namespaces/" + kube::EscapePathSegment(pod.metadata.ns) + "/pods/" +
         kube::EscapePathSegment(pod.metadata.name) + ":" + std::to_string(MetricsPort(pod)) + "/proxy/metrics";
}

// The agent of each node.
std::map<std::string, const PartPod*> AgentsOf(const std::vector<std::shared_ptr<const PartPod>>& pods) {
  std::map<std::string, const PartPod*> agents;
  for (const auto& pod : pods) {
    if (!pod->metadata.Label("app.kubernetes.io/name").ends_with(kAgentNameSuffix)) continue;
    if (pod->status.phase == "Running") agents.insert_or_assign(pod->spec.node_name, pod.get());
  }
  return agents;
}

class Asking {
 public:
  Asking(kube::Client& client, const kube::Clock& clock, kube::TimePoint until)
      : client_(client), clock_(clock), until_(until) {}

  void Ask(const std::vector<std::pair<std::string, const PartPod*>>& agents) {
    std::vector<kube::Thread> threads;
    for (std::size_t i = 0; i < std::min(kAtOnce, agents.size()); ++i) {
      threads.push_back(clock_.Spawn([&](const std::stop_token&) {
        for (std::size_t next = next_++; next < agents.size(); next = next_++)
          AskOne(agents[next].first, *agents[next].second);
      }));
    }
  }  // Waits for all of them.
  void Miss(const std::string& node, const std::string& why) {
    const std::lock_guard lock(mutex_);
    missed_.emplace(node, why);
  }
  AgentAnswers Finish(std::size_t nodes) {
    if (missed_.empty()) return {std::move(uses_), ""};
    const auto& [node, why] = *missed_.begin();
    return {std::move(uses_), "what is used is not known of " + std::to_string(missed_.size()) + " of " +
                                  std::to_string(nodes) + " nodes: " + node + ": " + why};
  }

 private:
  void AskOne(const std::string& node, const PartPod& agent) {
    if (clock_.Now() >= until_) return Miss(node, "there was no time left to ask");
    const kube::Result<std::string> text = client_.GetRaw(MetricsPath(agent));
    if (!text) return Miss(node, text.error().message());
    PartUses uses = ParsePartUses(*text);
    const std::lock_guard lock(mutex_);
    uses_.merge(uses);
  }

  kube::Client& client_;
  const kube::Clock& clock_;
  const kube::TimePoint until_;
  std::atomic<std::size_t> next_ = 0;

  std::mutex mutex_;  // Guards what follows, until all threads have ended.
  PartUses uses_;
  std::map<std::string, std::string> missed_;  // Why, by node.
};

}  // namespace

AgentAnswers AskAgents(kube::Client& client, const std::vector<std::shared_ptr<const PartPod>>& pods,
                       const std::vector<std::string>& nodes, const kube::Clock& clock, kube::Duration limit) {
  const std::map<std::string, const PartPod*> known = AgentsOf(pods);
  Asking asking(client, clock, clock.Now() + limit);
  std::vector<std::pair<std::string, const PartPod*>> agents;
  for (const std::string& node : nodes) {
    const auto agent = known.find(node);
    if (agent != known.end()) agents.emplace_back(node, agent->second);
    else asking.Miss(node, "no pod of grus-node-agent runs on it in that namespace");
  }
  asking.Ask(agents);
  return asking.Finish(nodes.size());
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/utilization_watch.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace grus {
namespace {

using kube::Action;
using kube::ObjectKey;

constexpr char kOldestSample[] = "[120s]";
constexpr double kBytesOfMebibyte = 1 << 20;
// More than any GPU has, or a node: DCGM's blanks are near 2^63, and others may write series.
constexpr double kMostMebibytes = 1 << 20;
constexpr std::size_t kMostCards = 64;

// By which exporters name a node, most trusted first; then what they were asked at, without its port.
constexpr std::string_view kNodeLabels[] = {"node", "kubernetes_node", "Hostname", "nodename"};

std::string_view Label(const QuerySample& sample, std::string_view name) {
  const auto found = std::ranges::find(sample.labels, name, &std::pair<std::string, std::string>::first);
  return found == sample.labels.end() ? std::string_view() : std::string_view(found->second);
}

std::string NodeOf(const QuerySample& sample) {
  for (const std::string_view name : kNodeLabels) {
    if (const std::string_view node = Label(sample, name); !node.empty()) return std::string(node);
  }
  const std::string_view instance = Label(sample, "instance");
  return std::string(instance.substr(0, instance.rfind(':')));
}

// A number of a card, in bytes or in MiB.
struct CardQuery {
  const char* metric;
  const char* uuid_label;
  const char* model_label;
  double unit;  // MiB.
  bool is_total;
  std::optional<double> CardUse::*into;
};

// Those of grus-node-agent are asked first, and count.
constexpr CardQuery kCardQueries[] = {
    {"grus_gpu_memory_used_bytes", "uuid", "model", 1 / kBytesOfMebibyte, false, &CardUse::used},
    {"grus_gpu_memory_total_bytes", "uuid", "model", 1 / kBytesOfMebibyte, true, &CardUse::free},
    {"DCGM_FI_DEV_FB_USED", "UUID", "modelName", 1, false, &CardUse::used},
    {"DCGM_FI_DEV_FB_FREE", "UUID", "modelName", 1, false, &CardUse::free},
};

std::string TextOf(const CardQuery& query, const std::string& selector) {
  return std::string("max by (node,kubernetes_node,Hostname,instance,") + query.uuid_label + "," + query.model_label +
         ") (last_over_time(" + query.metric + "{" + selector + "}" + kOldestSample + "))";
}

// The node exporter may be known by its address only; the system that it runs on has the name of the node.
std::string CpuQuery(const std::string& selector) {
  const std::string busy = "1 - avg by (node,kubernetes_node,instance) (rate(node_cpu_seconds_total{mode=\"idle\"" +
                           std::string(selector.empty() ? "" : ",") + selector + "}" + kOldestSample + "))";
  // Of an instance with two names, as of two clusters in one Prometheus, none is believed: it would end the query.
  const std::string names = "max by (instance,nodename) (node_uname_info{" + selector + "})";
  const std::string unique = names + " and on (instance) (count by (instance) (" + names + ") == 1)";
  return "(" + busy + ") * on (instance) group_left (nodename) (" + unique + ") or (" + busy + ")";
}

void Take(const CardQuery& query, const QuerySample& sample, std::map<std::string, MeasuredNode>& nodes) {
  const double amount = sample.value * query.unit;
  const std::string node = NodeOf(sample);
  const std::string_view uuid = Label(sample, query.uuid_label);
  if (node.empty() || uuid.empty() || !(amount >= 0 && amount < kMostMebibytes)) return;
  auto& cards = nodes[node].cards;
  if (cards.size() >= kMostCards && !cards.contains(std::string(uuid))) return;
  CardUse& card = cards[std::string(uuid)];
  std::optional<double>& number = card.*query.into;
  if (number) return;
  if (query.is_total) {
    if (card.used) number = std::max(0.0, amount - *card.used);
  } else {
    number = amount;
  }
  if (card.model.empty()) card.model = Label(sample, query.model_label);
}

}  // namespace

UtilizationWatch::UtilizationWatch(Prometheus& prometheus, UtilizationSource source, const kube::Clock& clock,
                                   const kube::Log& log)
    : prometheus_(prometheus), source_(std::move(source)), clock_(clock), log_(log) {}

void UtilizationWatch::FeedQueue(kube::WorkQueue& queue) { queue.Add({"", "utilization"}); }

bool UtilizationWatch::Ask(const char* what, const std::string& query, const OnSample& on_sample,
                           std::stop_token stop) {
  const kube::Status answered = prometheus_.AskAll(source_.url, query, on_sample, std::move(stop));
  if (answered) {
    failing_.erase(what);
  } else if (failing_.insert(what).second) {
    log_.Warn("nodes are scored without what is measured", {{"of", what}, {"error", answered.error().message()}});
  }
  return bool(answered);
}

kube::Result<Action> UtilizationWatch::Reconcile(const ObjectKey&, std::stop_token stop) {
  const kube::TimePoint began = clock_.Now();
  std::map<std::string, MeasuredNode> nodes;
  bool is_answered = true;
  for (const CardQuery& query : kCardQueries) {
    const auto take = [&](const QuerySample& sample) { Take(query, sample, nodes); };
    is_answered &= Ask(query.metric, TextOf(query, source_.selector), take, stop);
  }
  Ask(
      "node_cpu_seconds_total", CpuQuery(source_.selector),
      [&](const QuerySample& sample) {
        const auto node = nodes.find(NodeOf(sample));
        if (node != nodes.end() && sample.value >= 0) node->second.cpu = sample.value;
      },
      stop);
  const Action next = Action::After(kEvery);
  if (!is_answered) return next;  // Some nodes would seem to have nothing; what was known stays for a while.
  std::map<std::string, double, std::less<>> scores;
  for (const auto& [name, node] : nodes) {
    if (const auto score = UtilizationScore(node, source_.weights)) scores.emplace(name, *score);
  }
  const std::lock_guard lock(mutex_);
  scores_ = std::move(scores);
  asked_ = began;
  return next;
}

void UtilizationWatch::Rank(std::span<const std::string_view> nodes, std::vector<NodeRank>& ranks) const {
  // A node that has what the pod needs for it stays the best.
  const auto goes_by_score = [](const NodeRank& one) {
    return one.placement == PoolPlacement::kUtilSched && one.is_known && std::isfinite(one.rank);
  };
  if (std::ranges::none_of(ranks, goes_by_score)) return;
  const std::lock_guard lock(mutex_);
  if (clock_.Now() - asked_ > kOldest) return;
  std::vector<std::optional<double>> scores(nodes.size());
  bool is_any_known = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto found = goes_by_score(ranks[i]) ? scores_.find(nodes[i]) : scores_.end();
    if (found == scores_.end()) continue;
    scores[i] = found->second;
    is_any_known = true;
  }
  for (std::size_t i = 0; is_any_known && i < nodes.size(); ++i) {
    if (!goes_by_score(ranks[i])) continue;
    ranks[i].is_known = scores[i].has_value();
    ranks[i].rank = scores[i].value_or(0);
  }
}

}  // namespace grus

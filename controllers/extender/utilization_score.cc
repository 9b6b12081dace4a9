// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/utilization_score.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "clientlib/base/lower_case.h"

namespace grus {
namespace {

constexpr double kModelPart = 5, kCardsPart = 10, kCpuPart = 3, kMemoryUnit = 12, kMebibytesOfGibibyte = 1024;
constexpr double kMaxWeight = 1000;

std::optional<double> WeightIn(std::string_view text) {
  double weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  const bool is_weight =
      error == std::errc() && end == text.data() + text.size() && weight >= 0 && weight <= kMaxWeight;
  return is_weight ? std::optional(weight) : std::nullopt;
}

std::string_view Trim(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

}  // namespace

ModelWeights::ModelWeights() : by_name_{{"k80", 6}, {"titan x", 7}, {"v100", 10}} {}

kube::Result<ModelWeights> ModelWeights::Parse(std::string_view text) {
  ModelWeights weights;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    if (Trim(item).empty()) continue;
    const std::size_t equal = item.find('=');
    const std::string_view name = Trim(item.substr(0, equal));
    const auto weight = equal == std::string_view::npos ? std::nullopt : WeightIn(Trim(item.substr(equal + 1)));
    if (name.empty() || !weight) {
      return kube::Error(kube::ErrorCode::kInvalidArgument,
                         "\"" + std::string(item) + "\": expected MODEL=WEIGHT, such as A100=14, of 0 to 1000");
    }
    weights.by_name_[kube::LowerCase(name)] = *weight;
  }
  return weights;
}

double ModelWeights::WeightOf(std::string_view model) const {
  const std::string lower = kube::LowerCase(model);
  const std::pair<const std::string, double>* best = nullptr;
  double greatest = 0;
  for (const auto& one : by_name_) {
    greatest = std::max(greatest, one.second);
    if (lower.find(one.first) == std::string::npos) continue;
    if (best == nullptr || one.first.size() > best->first.size()) best = &one;
  }
  return best != nullptr ? best->second : greatest;
}

std::optional<double> UtilizationScore(const MeasuredNode& node, const ModelWeights& weights) {
  double models = 0, in_use = 0;
  bool is_known = false;
  for (const auto& [uuid, card] : node.cards) {
    if (!card.is_known()) continue;
    is_known = true;
    const double total = *card.used + *card.free;
    models += weights.WeightOf(card.model) * total / kMebibytesOfGibibyte / kMemoryUnit;
    in_use += std::clamp(*card.used / total, 0.0, 1.0);
  }
  if (!is_known) return std::nullopt;
  return kModelPart * models + kCardsPart * in_use + kCpuPart * std::clamp(node.cpu.value_or(0), 0.0, 1.0);
}

}  // namespace grus

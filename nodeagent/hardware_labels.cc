// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/hardware_labels.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace grus {
namespace {

using kube::StringMap;

constexpr std::string_view kOthersPrefix = "nvidia.com/gpu.";
constexpr char kProduct[] = "nvidia.com/gpu.product", kCount[] = "nvidia.com/gpu.count";
constexpr char kMemory[] = "nvidia.com/gpu.memory", kDriver[] = "nvidia.com/cuda.driver-version.full";
constexpr std::size_t kLongestValue = 63;

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

// As a value of a label: spaces become dashes, what no label may hold is dropped.
std::string LabelValue(std::string_view text) {
  std::string value;
  for (const char c : text) {
    if (c == ' ' && !value.empty() && value.back() != '-') value += '-';
    if (IsAlphanumeric(c) || c == '-' || c == '_' || c == '.') value += c;
  }
  value.erase(
      0, std::min(value.size(), static_cast<std::size_t>(std::ranges::find_if(value, IsAlphanumeric) - value.begin())));
  value.resize(std::min(value.size(), kLongestValue));
  while (!value.empty() && !IsAlphanumeric(value.back())) value.pop_back();
  return value;
}

// The label, if `value_of` is the same for all GPUs.
template <typename ValueOf>
void AddCommon(const NodeSample& look, std::string_view key, const ValueOf& value_of, StringMap& labels) {
  const std::string value = value_of(look.gpus.front());
  const auto is_same = [&](const GpuState& state) { return value_of(state) == value; };
  if (!value.empty() && std::ranges::all_of(look.gpus, is_same)) labels.emplace(key, value);
}

std::string Mebibytes(const GpuState& state) {
  const auto total = state.sample ? state.sample->memory_total_bytes : std::nullopt;
  const std::uint64_t mebibytes = total.value_or(0) >> 20;
  return mebibytes > 0 ? std::to_string(mebibytes) : std::string();
}

// "KEY=VALUE,KEY=VALUE"; neither holds a comma or an equals sign.
std::string ToText(const StringMap& labels) {
  std::string text;
  for (const auto& [key, value] : labels) {
    text.append(text.empty() ? "" : ",").append(key.view()).append("=").append(value.view());
  }
  return text;
}

StringMap Parse(std::string_view text) {
  StringMap labels;
  while (!text.empty()) {
    const std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals != std::string_view::npos) labels.emplace(one.substr(0, equals), one.substr(equals + 1));
  }
  return labels;
}

bool AreOthers(const StringMap& labels, const StringMap& ours) {
  return std::ranges::any_of(labels, [&](const auto& label) {
    const std::string_view key = label.first.view();
    if (!key.starts_with(kOthersPrefix) && key != kDriver) return false;
    return !ours.contains(key) || ours.Get(key) != label.second.view();
  });
}

}  // namespace

StringMap HardwareLabels(const NodeSample& look) {
  StringMap labels;
  if (look.gpus.empty()) return labels;
  labels.emplace(kCount, std::to_string(look.gpus.size()));
  AddCommon(
      look, kProduct, [](const GpuState& state) { return LabelValue(state.gpu.model); }, labels);
  AddCommon(look, kMemory, Mebibytes, labels);
  AddCommon(
      look, kDriver, [](const GpuState& state) { return LabelValue(state.gpu.driver_version); }, labels);
  return labels;
}

LabelChange PlanLabels(const kube::ObjectMeta& node, const StringMap& wanted) {
  const std::string_view stored = node.Annotation(kGpuLabelsAnnotation);
  const StringMap ours = Parse(stored);
  LabelChange change{.is_others = AreOthers(node.labels, ours)};
  const std::string text = change.is_others ? std::string() : ToText(wanted);
  if (text != stored) change.annotations[kGpuLabelsAnnotation] = text.empty() ? kube::Json() : kube::Json(text);
  if (change.is_others) return change;
  for (const auto& [key, value] : wanted) {
    if (node.Label(key.view()) != value.view()) change.labels[key.view()] = value;
  }
  for (const auto& [key, value] : ours) {
    if (!wanted.contains(key.view()) && node.labels.contains(key.view())) change.labels[key.view()] = kube::Json();
  }
  return change;
}

}  // namespace grus

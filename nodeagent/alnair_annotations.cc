// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/alnair_annotations.h"

#include <algorithm>
#include <string_view>

namespace grus {
namespace {

constexpr unsigned kParts = 10;  // A value is written again when it has moved by one of so many parts.

// A Python string.
std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

class PythonDict {
 public:
  // `value`: as Python writes it.
  void Add(std::string_view key, std::string_view value) {
    text_.append(text_.size() == 1 ? "" : ", ").append(Quoted(key)).append(": ").append(value);
  }
  std::string Text() const { return text_ + "}"; }

 private:
  std::string text_ = "{";
};

// Rounded up, as the original does.
std::uint64_t InUnits(std::uint64_t bytes, int shift) { return (bytes + (std::uint64_t{1} << shift) - 1) >> shift; }
std::uint64_t Gibibytes(std::uint64_t bytes) { return InUnits(bytes, 30); }
std::string GibibytesText(std::uint64_t number) { return Quoted(std::to_string(number) + "GB"); }

std::string ProcessesText(const AlnairUsage& usage) {
  std::string text;
  for (const auto& [pid, bytes] : usage.process_bytes) {
    text.append(text.empty() ? "(" : ", (").append(std::to_string(pid)).append(", ");
    text.append(Quoted(std::to_string(InUnits(bytes, 20)) + "MB")).append(")");
  }
  return "[" + text + "]";
}

template <typename Number>
bool Moved(const std::optional<Number>& before, const std::optional<Number>& after, Number scale) {
  if (before.has_value() != after.has_value()) return true;
  if (!before) return false;
  const Number distance = std::max(*before, *after) - std::min(*before, *after);
  return distance > 0 && distance * kParts >= scale;
}

}  // namespace

std::string GpuStaticText(const NodeSample& look) {
  const auto index = [](const GpuState& state) { return state.gpu.index; };
  const auto first = std::ranges::min_element(look.gpus, {}, index);
  if (first == look.gpus.end() || !first->sample || !first->sample->memory_total_bytes) return "";
  const Gpu& gpu = first->gpu;
  if (gpu.model.empty() || !gpu.pcie_generation || !gpu.pcie_lanes) return "";
  PythonDict dict;
  dict.Add("count", Quoted(std::to_string(look.gpus.size())));
  dict.Add("model", Quoted(gpu.model));
  dict.Add("mem_size", GibibytesText(Gibibytes(*first->sample->memory_total_bytes)));
  dict.Add("pcie_gen_width", Quoted(std::to_string(*gpu.pcie_generation) + "x" + std::to_string(*gpu.pcie_lanes)));
  return dict.Text();
}

std::optional<AlnairUsage> AlnairUsageOf(const GpuState& state) {
  if (!state.sample) return std::nullopt;
  AlnairUsage usage{.memory_used_bytes = state.sample->memory_used_bytes,
                    .memory_total_bytes = state.sample->memory_total_bytes,
                    .peak_utilization_percent = state.peak_utilization_percent,
                    .peak_memory_controller_percent = state.peak_memory_controller_percent,
                    .processes = state.processes.size()};
  for (const ProcessSample& process : state.processes) {
    if (process.usage.memory_bytes) usage.process_bytes.emplace_back(process.usage.pid, *process.usage.memory_bytes);
  }
  std::ranges::sort(usage.process_bytes);
  return usage;
}

std::string ToText(const AlnairUsage& usage) {
  PythonDict dict;
  if (usage.memory_used_bytes) {
    const std::uint64_t used = Gibibytes(*usage.memory_used_bytes);
    dict.Add("mem_used", GibibytesText(used));
    if (usage.memory_total_bytes) {
      const std::uint64_t total = Gibibytes(*usage.memory_total_bytes);
      dict.Add("mem_free", GibibytesText(total - std::min(total, used)));
    }
  }
  dict.Add("process_cnt", std::to_string(usage.processes));
  if (!usage.process_bytes.empty()) dict.Add("pid-mem", ProcessesText(usage));
  const auto add_percent = [&](std::string_view key, const std::optional<std::uint32_t>& percent) {
    if (percent) dict.Add(key, std::to_string(*percent) + ".0");  // A float of Prometheus.
  };
  add_percent("max_mem_util", usage.peak_memory_controller_percent);
  add_percent("max_gpu_util", usage.peak_utilization_percent);
  return dict.Text();
}

bool HasMoved(const AlnairUsage& before, const AlnairUsage& after) {
  constexpr std::uint32_t kWhole = 100;
  return Moved(before.memory_used_bytes, after.memory_used_bytes, after.memory_total_bytes.value_or(0)) ||
         before.memory_total_bytes != after.memory_total_bytes ||
         Moved(before.peak_utilization_percent, after.peak_utilization_percent, kWhole) ||
         Moved(before.peak_memory_controller_percent, after.peak_memory_controller_percent, kWhole) ||
         Moved<std::size_t>(before.processes, after.processes, std::max(before.processes, after.processes));
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/alnair_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "crds/types/alnair_names.h"

namespace grus {
namespace {

constexpr double kTenth = 1.1, kMost = 1e15;
constexpr int kMostDigits = 4;  // Behind the point.
constexpr char kGpuUtil[] = "gpu_util", kGpuMemUtil[] = "gpu_mem_util", kNode[] = "node";
constexpr const char* kPodNumbers[] = {"max_cpu_util", "max_cpu_mem_mb", "max_network_mbps", "max_disk_io"};

std::string GpuName(std::int32_t gpu) { return "gpu_" + std::to_string(gpu); }

double Rounded(double value, int digits = 2) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

// Names of one owner's or pod's numbers, in the order of kPodNumbers: what they are without "max_" on an owner.
void AddOfPod(const PodUsage& usage, const PodDetail& detail, std::size_t from, AlnairNumbers& numbers) {
  const std::optional<double> values[] = {usage.cpu_cores, usage.max_memory, detail.sent, detail.writing};
  constexpr double kScales[] = {100, 1e-6, 1e-6, 1};
  constexpr int kDigits[] = {2, 2, 2, kMostDigits};
  for (std::size_t i = 0; i < std::size(values); ++i) {
    if (values[i]) numbers[kPodNumbers[i] + from] = Rounded(*values[i] * kScales[i], kDigits[i]);
  }
}

// Of each process; of a GPU of which no process is known, its own. Of many the lowest PIDs of each GPU: the same ones
// at each time.
AlnairNumbers ByProcess(const std::map<GpuProcessId, double>& percent) {
  using Entry = std::pair<int, const std::pair<const GpuProcessId, double>*>;  // The first of its GPU is 0.
  std::vector<Entry> entries;
  for (const auto& number : percent) {
    const GpuProcessId& id = number.first;
    const auto next = percent.upper_bound({id.gpu, 0});
    const bool has_processes = next != percent.end() && next->first.gpu == id.gpu;
    if (id.pid == 0 && has_processes) continue;
    const bool is_first = entries.empty() || entries.back().second->first.gpu != id.gpu;
    entries.emplace_back(is_first ? 0 : entries.back().first + 1, &number);
  }
  std::ranges::stable_sort(entries, {}, &Entry::first);
  entries.resize(std::min(entries.size(), kMostProcesses));
  AlnairNumbers numbers;
  for (const auto& [rank, number] : entries) {
    const auto& [id, value] = *number;
    numbers[GpuName(id.gpu) + (id.pid == 0 ? "" : "_" + std::to_string(id.pid))] = Rounded(value);
  }
  return numbers;
}

void RaiseNumbers(const AlnairNumbers& now, AlnairNumbers& so_far) {
  for (const auto& [name, value] : now) {
    double& number = so_far.try_emplace(name, value).first->second;
    number = std::max(number, value);
  }
}

// Processes come and go: those that are there now stay.
void RaiseProcesses(const AlnairNumbers& now, AlnairNumbers& so_far) {
  RaiseNumbers(now, so_far);
  for (const auto& [name, value] : now) {  // "gpu_0_4711": who uses the GPU is known.
    const std::size_t end = name.rfind('_');
    if (end > 3) so_far.erase(name.substr(0, end));
  }
  for (auto at = so_far.begin(); at != so_far.end() && so_far.size() > kMostProcesses;) {
    at = now.contains(at->first) ? std::next(at) : so_far.erase(at);
  }
  while (so_far.size() > kMostProcesses) so_far.erase(std::prev(so_far.end()));
}

double RiseOfNumbers(const AlnairNumbers& before, const AlnairNumbers& now) {
  double rise = 0;
  for (const auto& [name, value] : now) {
    const auto at = before.find(name);
    if (at == before.end()) return HUGE_VAL;
    if (value > at->second * kTenth) rise = std::max(rise, at->second > 0 ? value / at->second : HUGE_VAL);
  }
  return rise;
}

// As Python writes a float or, of whole percents, an int.
std::string NumberText(double value, bool is_float) {
  char text[32];
  const double written = Rounded(std::clamp(value, 0.0, kMost), kMostDigits);
  const auto [end, error] = std::to_chars(std::begin(text), std::end(text), written, std::chars_format::fixed);
  std::string number = error == std::errc() ? std::string(text, end) : "0";
  if (is_float && number.find('.') == std::string::npos) number += ".0";
  return number;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= ' ') quoted += c;
  }
  return quoted + "'";
}

std::string DictText(const AlnairNumbers& numbers, bool is_float, const std::string& node = {}) {
  std::string text = "{";
  for (const auto& [name, value] : numbers) {
    text += (text.size() > 1 ? ", " : "") + Quoted(name) + ": " + NumberText(value, is_float);
  }
  if (!node.empty()) text += std::string(text.size() > 1 ? ", " : "") + Quoted(kNode) + ": " + Quoted(node);
  return text + "}";
}

std::optional<double> NumberIn(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_all = error == std::errc() && end == text.data() + text.size();
  return is_all && value >= 0 && value <= kMost ? std::optional(Rounded(value, kMostDigits)) : std::nullopt;
}

// Reads Python's dict texts of names and numbers or names, as DictText() writes them.
class DictReader {
 public:
  explicit DictReader(std::string_view text) : rest_(text.substr(0, kLongestAlnairText)) {}

  using Entries = std::vector<std::pair<std::string, std::string>>;
  std::optional<Entries> Read() {
    Entries entries;
    if (!Take('{')) return std::nullopt;
    if (Take('}')) return AtEnd(std::move(entries));
    do {
      const auto name = TakeQuoted();
      if (!name || !Take(':')) return std::nullopt;
      const auto value = rest_.starts_with('\'') ? TakeQuoted() : std::optional(TakeWord());
      if (!value) return std::nullopt;
      entries.emplace_back(*name, *value);
    } while (Take(','));
    return Take('}') ? AtEnd(std::move(entries)) : std::nullopt;
  }

 private:
  std::optional<Entries> AtEnd(Entries entries) const {
    return rest_.empty() ? std::optional(std::move(entries)) : std::nullopt;
  }
  bool Take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    rest_.remove_prefix(std::min(rest_.find_first_not_of(' '), rest_.size()));
    return true;
  }
  std::optional<std::string> TakeQuoted() {
    if (!rest_.starts_with('\'')) return std::nullopt;
    std::string text;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '\'') {
        rest_.remove_prefix(i);
        Take('\'');
        return text;
      }
      if (rest_[i] == '\\' && ++i == rest_.size()) break;
      text += rest_[i];
    }
    return std::nullopt;
  }
  std::string TakeWord() {
    const std::size_t end = std::min(rest_.find_first_of(",}"), rest_.size());
    std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }

  std::string_view rest_;
};

AlnairNumbers ReadNumbers(std::string_view text) {
  AlnairNumbers numbers;
  for (const auto& [name, value] : DictReader(text).Read().value_or(DictReader::Entries())) {
    if (const auto number = NumberIn(value)) numbers[name] = *number;
  }
  return numbers;
}

std::string PodName(const std::string& name) { return api::kAlnairPodPrefix + name; }

}  // namespace

AlnairPod AlnairPodOf(const PodUsage& usage, const PodDetail& detail) {
  AlnairPod pod{.gpu_util = ByProcess(detail.utilization), .gpu_mem_util = ByProcess(detail.memory_utilization)};
  AddOfPod(usage, detail, 0, pod.numbers);
  return pod;
}

AlnairOwned AlnairOwnedOf(const PodUsage& usage, const PodDetail& detail, const std::string& node) {
  AlnairOwned owned{.node = node};
  AddOfPod(usage, detail, std::string_view("max_").size(), owned.numbers);
  const auto name_of = [&](std::int32_t gpu) { return node + "-gpu-" + std::to_string(gpu); };
  for (const auto& [id, percent] : detail.utilization) {
    if (id.pid == 0) owned.numbers[name_of(id.gpu) + "_util"] = Rounded(percent);
  }
  for (const auto& [gpu, bytes] : detail.gpu_memory) {
    owned.numbers[name_of(gpu) + "_mem_mb"] = std::ceil(bytes / (1 << 20));
  }
  return owned;
}

void Raise(const AlnairPod& now, AlnairPod& so_far) {
  RaiseNumbers(now.numbers, so_far.numbers);
  RaiseProcesses(now.gpu_util, so_far.gpu_util);
  RaiseProcesses(now.gpu_mem_util, so_far.gpu_mem_util);
}

void Raise(const AlnairOwned& now, AlnairOwned& so_far) {
  if (now.node != so_far.node) so_far = now;
  else RaiseNumbers(now.numbers, so_far.numbers);
}

double RiseOf(const AlnairPod& before, const AlnairPod& now) {
  return std::max({RiseOfNumbers(before.numbers, now.numbers), RiseOfNumbers(before.gpu_util, now.gpu_util),
                   RiseOfNumbers(before.gpu_mem_util, now.gpu_mem_util)});
}

double RiseOf(const AlnairOwned& before, const AlnairOwned& now) {
  if (now.numbers.empty()) return 0;
  return before.node != now.node ? HUGE_VAL : RiseOfNumbers(before.numbers, now.numbers);
}

std::map<std::string, std::string> AnnotationsOf(const AlnairPod& pod) {
  std::map<std::string, std::string> annotations;
  for (const auto& [name, value] : pod.numbers) annotations[PodName(name)] = NumberText(value, true);
  if (!pod.gpu_util.empty()) annotations[PodName(kGpuUtil)] = DictText(pod.gpu_util, false);
  if (!pod.gpu_mem_util.empty()) annotations[PodName(kGpuMemUtil)] = DictText(pod.gpu_mem_util, false);
  return annotations;
}

std::string TextOf(const AlnairOwned& owned) { return DictText(owned.numbers, true, owned.node); }

AlnairPod ReadAlnairPod(const kube::StringMap& annotations) {
  AlnairPod pod{.gpu_util = ReadNumbers(annotations.Get(PodName(kGpuUtil))),
                .gpu_mem_util = ReadNumbers(annotations.Get(PodName(kGpuMemUtil)))};
  for (const char* name : kPodNumbers) {
    if (const auto value = NumberIn(annotations.Get(PodName(name)))) pod.numbers[name] = *value;
  }
  return pod;
}

std::optional<AlnairOwned> ReadAlnairOwned(std::string_view text) {
  const auto entries = DictReader(text).Read();
  if (!entries) return std::nullopt;
  AlnairOwned owned;
  for (const auto& [name, value] : *entries) {
    if (name == kNode) owned.node = value;
    else if (const auto number = NumberIn(value)) owned.numbers[name] = *number;
  }
  return owned;
}

}  // namespace grus

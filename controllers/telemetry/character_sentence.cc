// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/character_sentence.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace grus {
namespace {

std::string Number(const char* format, double value) {
  std::array<char, 64> text = {};
  const int length = std::snprintf(text.data(), text.size(), format, value);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

std::string Percent(double share) { return Number("%.0f %%", 100 * share); }

std::string Time(double seconds) {
  if (seconds < 100) return Number("%.3g s", seconds);
  return seconds < 7200 ? Number("%.1f min", seconds / 60) : Number("%.1f h", seconds / 3600);
}

std::string Gpus(const JobSeries& job) {
  return job.gpus == 1 ? std::string("its GPU is") : "its " + std::to_string(job.gpus) + " GPUs are";
}

std::string Subject(const Character& character, const JobSeries& job) {
  const std::string gpus = job.gpus == 1 ? "1 GPU" : std::to_string(job.gpus) + " GPUs";
  switch (character.kind) {
    case JobKind::kTraining: return "training on " + gpus;
    case JobKind::kInference: return "inference on " + gpus;
    case JobKind::kBatch: return "batch job on " + gpus + " without a visible cycle";
    case JobKind::kInteractive: return "interactive work that holds " + gpus;
    case JobKind::kIdle: return "holds " + gpus + " and does not use them";
    case JobKind::kUnknown: break;
  }
  return "job of unknown kind on " + gpus;
}

std::string Cycle(const Character& character) {
  if (!character.period_s) return "";
  std::string text = " in cycles of " + Time(*character.period_s);
  if (character.iteration_s) text += ", with steps of " + Time(*character.iteration_s);
  return text;
}

// What shows that they wait.
std::string Evidence(const BottleneckFinding& finding) {
  const std::string while_waiting = " while the GPUs wait, " + Percent(finding.waiting) + " of the time";
  switch (finding.witness) {
    case Witness::kCpu:
      if (!finding.is_by_waiting) return "the CPUs are busy to " + Percent(finding.cpu.value_or(0));
      return "the CPUs are busy to " + Percent(finding.cpu_while_waiting.value_or(0)) + while_waiting;
    case Witness::kDisk: return "the disks are busy" + while_waiting;
    case Witness::kNetwork:
      if (finding.is_by_waiting) return "the network is busy" + while_waiting;
      return "the network carries " + Percent(finding.network_share.value_or(0)) + " of its limit";
    case Witness::kNone: break;
  }
  return "memory bandwidth is used to " + Percent(finding.memory_bandwidth.value_or(0));
}

std::string Reason(const BottleneckFinding& finding) {
  switch (finding.bottleneck) {
    case Bottleneck::kNone: return "";
    case Bottleneck::kInput: return ", and input is the limit: " + Evidence(finding);
    case Bottleneck::kCompute: return ", and compute is the limit: " + Evidence(finding);
    case Bottleneck::kMemoryBandwidth: return ", and memory is the limit: " + Evidence(finding);
    case Bottleneck::kCommunication: return ", and communication is the limit: " + Evidence(finding);
    case Bottleneck::kUnknown: break;
  }
  return ", and the samples do not show what holds it back";
}

}  // namespace

std::string SentenceOf(const Character& character, const BottleneckFinding& finding, const JobSeries& job) {
  std::string text = Subject(character, job) + Cycle(character);
  if (!finding.gpu_utilization) return text + ": there are too few samples of its GPUs";
  text += ": " + Gpus(job) + " busy to " + Percent(*finding.gpu_utilization);
  text += Reason(finding);
  if (character.predicted_peak_memory) {
    text += "; GPU memory will peak at about " +
            Number("%.1f GiB", *character.predicted_peak_memory / (1024.0 * 1024 * 1024));
  }
  return text;
}

}  // namespace grus

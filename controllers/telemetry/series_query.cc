// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/series_query.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace grus {
namespace {

constexpr char kWhich[] = "series";  // The label that names the series.

// How an exporter's labels name pod and container: as they are, renamed by a scrape without honorLabels, or those of a
// cAdvisor that runs by itself.
// Only labels that the target has too are renamed, so that there may be one of each.
struct Naming {
  const char *ns, *pod, *container, *without;
};
constexpr Naming kNamings[] = {
    {"namespace", "pod", "container", ",exported_namespace=\"\",exported_pod=\"\""},
    {"exported_namespace", "exported_pod", "exported_container", ""},
    {"exported_namespace", "pod", "container", ",exported_pod=\"\""},
    {"container_label_io_kubernetes_pod_namespace", "container_label_io_kubernetes_pod_name",
     "container_label_io_kubernetes_container_name", ""},
};
constexpr char kContainer[] = "container,exported_container,container_label_io_kubernetes_container_name";

// As a part of a regular expression within a text of PromQL.
std::string Escaped(const std::string& pod) {
  std::string text;
  for (const char c : pod) {
    if (c == '.') text += "\\\\.";
    else text += c;
  }
  return text;
}

class OfJob {
 public:
  OfJob(const NamedPods& pods, const std::string& selector) : ns_(pods.ns), selector_(selector) {
    for (const std::string& name : pods.names) pods_ += (pods_.empty() ? "" : "|") + Escaped(name);
  }

  std::string Gauge(const std::string& metric) const { return Any(metric, "", false); }
  // Rates of the newest two samples, as in pod_usage.cc.
  std::string Rate(const std::string& metric) const { return Any(metric, "irate", false); }
  // Of containers, not of the pods that hold them.
  std::string ContainerRate(const std::string& metric) const {
    return std::string("sum by (") + kPodLabels + ") (max by (cpu,device," + kContainer + "," + kPodLabels + ") (" +
           Any(metric, "irate", true) + "))";
  }
  std::string PodRate(const std::string& metric) const {
    return std::string("sum by (") + kPodLabels + ") (max by (interface," + kPodLabels + ") (" + Rate(metric) + "))";
  }
  // A gauge of the agent's GPUs that processes of the job are on.
  std::string OfAgentsGpus(const std::string& metric) const {
    return "max by (uuid) (" + metric + "{" + selector_ + "}) and on (uuid) " + Gauge("grus_gpu_process_memory_bytes");
  }

 private:
  std::string Any(const std::string& metric, const std::string& function, bool is_of_containers) const {
    std::string parts;
    for (const Naming& naming : kNamings) {
      std::string part =
          metric + "{" + naming.ns + "=\"" + ns_ + "\"," + naming.pod + "=~\"" + pods_ + "\"" + naming.without;
      if (is_of_containers) {
        part += std::string(",") + naming.container + "!=\"\"," + naming.container + "!=\"POD\"";
      }
      if (!selector_.empty()) part += "," + selector_;
      part += "}";
      if (!function.empty()) part = function + "(" + part + "[2m])";
      parts += (parts.empty() ? "(" : " or ") + part;
    }
    return parts + ")";
  }

  const std::string ns_, selector_;
  std::string pods_;
};

struct Field {
  const char* name;
  Series JobSeries::*series;
  double scale, highest;
};
constexpr Field kFields[] = {
    {"gpu", &JobSeries::gpu_utilization, 0.01, 1},         {"bandwidth", &JobSeries::memory_bandwidth, 0.01, 1},
    {"memory", &JobSeries::gpu_memory, 1, kMostGpuMemory}, {"cpu", &JobSeries::cpu, 1, 1},
    {"network", &JobSeries::network, 1, kMostBytes},       {"disk", &JobSeries::disk, 1, kMostBytes},
};

}  // namespace

std::string SeriesQuery(const NamedPods& pods, const std::string& selector) {
  const OfJob of(pods, selector);
  const auto percent = [&](const std::string& dcgm, const std::string& agent) {
    return "avg(" + of.Gauge(dcgm) + " <= 100) or 100 * avg(" + of.OfAgentsGpus(agent) + ")";
  };
  const std::pair<const char*, std::string> parts[] = {
      {"gpu", percent("DCGM_FI_DEV_GPU_UTIL", "grus_gpu_utilization_ratio")},
      {"bandwidth", percent("DCGM_FI_DEV_MEM_COPY_UTIL", "grus_gpu_memory_controller_utilization_ratio")},
      {"memory", "1048576 * max(" + of.Gauge("DCGM_FI_DEV_FB_USED") +
                     " < 1e7) or max(sum by (uuid) (max by (uuid,pid) (" + of.Gauge("grus_gpu_process_memory_bytes") +
                     ")))"},
      {"cpu", "avg(" + of.ContainerRate("container_cpu_usage_seconds_total") + ")"},
      // What is sent and written, as checkpoints are, is no input; gradients are received as much as they are sent.
      {"network", "max(" + of.PodRate("container_network_receive_bytes_total") + ")"},
      {"disk", "max(" + of.ContainerRate("container_fs_reads_bytes_total") + ")"},
  };
  std::string text;
  for (const auto& [name, query] : parts) {
    text += std::string(text.empty() ? "" : " or ") + "label_replace(" + query + ", \"" + kWhich + "\", \"" + name +
            "\", \"\", \"\")";
  }
  return text;
}

JobSeries EmptySeries(std::int64_t start, std::int64_t end, std::int64_t step) {
  JobSeries job;
  const auto size = static_cast<std::size_t>((end - start) / step + 1);
  for (const Field& field : kFields) {
    job.*field.series = {.start = start,
                         .step = static_cast<double>(step),
                         .values = std::vector<float>(size, std::numeric_limits<float>::quiet_NaN())};
  }
  return job;
}

void AddMoment(const QueryLabels& labels, double time, double value, double cores, JobSeries& job) {
  const auto field =
      std::ranges::find(kFields, LabelOf(labels, kWhich), [](const Field& f) { return std::string_view(f.name); });
  if (field == std::end(kFields)) return;
  double scaled = value * field->scale;
  if (field->series == &JobSeries::cpu) scaled = cores > 0 ? std::min(value / cores, 1.0) : NAN;  // Limits are soft.
  if (!std::isfinite(scaled) || scaled < 0 || scaled > field->highest) return;
  Series& series = job.*field->series;
  const double place = std::round((time - static_cast<double>(series.start)) / series.step);
  if (!(place >= 0) || !(place < static_cast<double>(series.values.size()))) return;
  series.values[static_cast<std::size_t>(place)] = static_cast<float>(scaled);
}

}  // namespace grus

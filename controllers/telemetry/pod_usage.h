// SPDX-License-Identifier: Apache-2.0
// What Prometheus is asked about all pods at once, and what its answers say of each. Pure.
//
// Sources: NVIDIA's dcgm-exporter or grus-node-agent for GPUs; the kubelet's cAdvisor, or one of its own, for the rest.
// What a source does not tell, or tells as a blank, is left out: it is never zero.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "clientlib/model/compact_key.h"
#include "clientlib/model/meta.h"

namespace grus {

// The labels by which exporters may name a pod. Above the bounds, a number is none: DCGM's blanks are near 2^63.
inline constexpr char kPodLabels[] =
    "namespace,pod,exported_namespace,exported_pod,container_label_io_kubernetes_pod_namespace,"
    "container_label_io_kubernetes_pod_name";
inline constexpr double kMostBytes = 1e14, kMostGpuMemory = 1e12;

// A number or none, in the 8 bytes of the number. It is never NaN.
class MaybeNumber {
 public:
  constexpr MaybeNumber() = default;
  constexpr MaybeNumber(double value) : value_(value) {}  // NOLINT: implicit on purpose
  constexpr operator std::optional<double>() const { return *this ? std::optional(value_) : std::nullopt; }  // NOLINT
  constexpr explicit operator bool() const { return value_ == value_; }
  constexpr double operator*() const { return value_; }
  // Of two numbers the higher one.
  constexpr void Raise(double value) {
    if (!*this || value_ < value) value_ = value;
  }
  friend constexpr bool operator==(MaybeNumber a, MaybeNumber b) { return a.value_ == b.value_ || (!a && !b); }

 private:
  double value_ = std::numeric_limits<double>::quiet_NaN();
};

// Of one pod, over the window of the queries.
struct PodUsage {
  MaybeNumber gpu_utilization = {}, max_gpu_utilization = {};  // 0..1; the mean of its GPUs, and the highest.
  MaybeNumber memory_bandwidth = {};                           // 0..1
  MaybeNumber max_gpu_memory = {};                             // Bytes, of one GPU.
  MaybeNumber cpu_cores = {};
  MaybeNumber max_memory = {};          // Bytes
  MaybeNumber network = {}, disk = {};  // Bytes/s
};

// Of many pods, for a short time: its memory goes back as a whole. Not thread-safe.
class UsageByPod {
 public:
  UsageByPod() = default;
  UsageByPod(UsageByPod&&) = default;
  UsageByPod& operator=(UsageByPod&&) = delete;  // Each has its own memory.

  PodUsage& operator[](const kube::CompactKey& pod) { return pods_.try_emplace(pod).first->second; }
  // Null: there is none. It stays where it is when others are added.
  template <typename Key>
  PodUsage* Find(const Key& pod) {
    const auto at = pods_.find(pod);
    return at == pods_.end() ? nullptr : &at->second;
  }
  template <typename Key>
  const PodUsage* Find(const Key& pod) const {
    const auto at = pods_.find(pod);
    return at == pods_.end() ? nullptr : &at->second;
  }
  std::size_t size() const { return pods_.size(); }

 private:
  // Apart, since the map knows its address.
  std::unique_ptr<std::pmr::monotonic_buffer_resource> memory_ =
      std::make_unique<std::pmr::monotonic_buffer_resource>();
  std::pmr::unordered_map<kube::CompactKey, PodUsage, kube::HashOfKey, kube::SameKey> pods_{memory_.get()};
};

struct UsageQuery {
  std::string name = {};  // Of what is asked, for the log: "GPU utilisation".
  std::string text = {};
  MaybeNumber PodUsage::*field = nullptr;
  double scale = 1;    // The answer times this is the field.
  double highest = 0;  // A field above is no value: DCGM's blanks are near 2^63.
};

// Each answers with one row for each pod. `window_of`: how many seconds the query of that name looks back. `selector`:
// matchers that each series must meet, such as job=~"dcgm-exporter|kubelet"; empty: all are believed.
using WindowOf = std::function<std::int64_t(const std::string& name)>;
std::vector<UsageQuery> UsageQueries(const WindowOf& window_of, const std::string& selector = {});

using QueryLabels = std::vector<std::pair<std::string, std::string>>;
std::string_view LabelOf(const QueryLabels& labels, std::string_view name);  // Empty: there is none.

// The pod that a row is about. Prometheus renames the exporter's labels to exported_... unless the scrape has
// honorLabels; then pod and namespace are those of the exporter. Nullopt: it is about none.
std::optional<kube::ObjectKey> PodOfRow(const QueryLabels& labels);

// The answer to `query`, as its rows come: none of it counts before Add(), since it may turn out to be cut off.
class UsageColumn {
 public:
  // `name_of`: a pod as its name is kept elsewhere; nullopt: it does not count.
  using NameOf = std::function<std::optional<kube::CompactKey>(const kube::ObjectKey& pod)>;
  UsageColumn(const UsageQuery& query, const NameOf& name_of, UsageByPod& usage)
      : query_(query), name_of_(name_of), usage_(usage) {}

  void Take(const QueryLabels& labels, double value);
  // Of two rows or sources for one pod, the higher value counts.
  void Add() const;

 private:
  const UsageQuery& query_;
  const NameOf& name_of_;
  UsageByPod& usage_;
  std::vector<std::pair<PodUsage*, double>> values_;
};

}  // namespace grus

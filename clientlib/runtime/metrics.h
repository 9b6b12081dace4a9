// SPDX-License-Identifier: Apache-2.0
// Counters, gauges and histograms in Prometheus text format.
//
// A Registry owns its families; a family owns one cell per set of label values. Callers look up a cell once and keep
// the reference (it lives as long as the registry), so counting is one atomic add. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kube {

class Counter {
 public:
  void Add(std::uint64_t n = 1) { value_.fetch_add(n, std::memory_order_relaxed); }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void Set(double v) { value_.store(v, std::memory_order_relaxed); }
  void Add(double d) { value_.fetch_add(d, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_{0};
};

class Histogram {
 public:
  explicit Histogram(std::vector<double> upper_bounds);  // Ascending; +Inf is implied.
  void Observe(double v);

 private:
  friend class Registry;
  std::vector<double> bounds_;
  std::vector<std::atomic<std::uint64_t>> buckets_;  // One more than bounds_.
  std::atomic<double> sum_{0};
};

class Registry {
 public:
  using LabelValues = std::vector<std::string>;

  Registry();
  ~Registry();
  // The same name must always come with the same type, help and label names (asserted).
  Counter& GetCounter(std::string_view name, std::string_view help, std::vector<std::string> label_names = {},
                      LabelValues values = {});
  Gauge& GetGauge(std::string_view name, std::string_view help, std::vector<std::string> label_names = {},
                  LabelValues values = {});
  Histogram& GetHistogram(std::string_view name, std::string_view help, const std::vector<double>& bounds,
                          std::vector<std::string> label_names = {}, LabelValues values = {});

  // A value that is read at scrape time (queue depth). `read` must be thread-safe and is called without a
  // lock held. A second function for the same labels replaces the first.
  void AddGaugeFunction(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                        LabelValues values, std::function<double()> read);
  // A whole family that is read at scrape time: a set of labels that is not returned any more is not shown any more.
  // The values of labels in the order of `label_names`, and no set twice. `read` as above. A second function replaces
  // the first.
  using Samples = std::vector<std::pair<LabelValues, double>>;
  void AddGaugeFamily(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                      std::function<Samples()> read);
  // The same for values that only grow.
  void AddCounterFamily(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                        std::function<Samples()> read);
  // AddGaugeFunction() for a value that only grows.
  void AddCounterFunction(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                          LabelValues values, std::function<double()> read);

  std::string Text() const;  // Prometheus text exposition format 0.0.4, families by name.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// process_cpu_seconds_total, process_resident_memory_bytes, process_start_time_seconds and process_open_fds,
// read from /proc.
void AddProcessMetrics(Registry& registry);

}  // namespace kube

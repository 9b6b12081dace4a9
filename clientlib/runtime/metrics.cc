// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/metrics.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <variant>

namespace kube {
namespace {

using Read = std::function<double()>;
// A cell. Counters, gauges and histograms never move; a function is copied before it is called.
using Cell = std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<Histogram>, Read>;

enum class Type { kCounter, kGauge, kHistogram };

std::string_view ToString(Type type) {
  switch (type) {
    case Type::kCounter: return "counter";
    case Type::kGauge: return "gauge";
    case Type::kHistogram: return "histogram";
  }
  return "";
}

struct Family {
  Type type = Type::kGauge;
  std::string help;
  std::vector<std::string> label_names;
  std::map<Registry::LabelValues, Cell> cells;
  std::function<Registry::Samples()> read_all;  // May be empty.
};

// First a letter, '_' (or ':' in the name of a metric), then digits too.
[[maybe_unused]] bool IsName(std::string_view name, bool is_label) {
  const auto is_first = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c == ':' && !is_label);
  };
  return !name.empty() && is_first(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return is_first(c) || (c >= '0' && c <= '9'); });
}

// A help text escapes backslash and line feed, a label value the quote as well.
void AppendEscaped(std::string& out, std::string_view text, bool is_label) {
  for (const char c : text) {
    if (c == '\\') out += "\\\\";
    else if (c == '\n') out += "\\n";
    else if (c == '"' && is_label) out += "\\\"";
    else out += c;
  }
}

void AppendNumber(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "NaN";
  } else if (std::isinf(v)) {
    out += v > 0 ? "+Inf" : "-Inf";
  } else {
    char digits[32];  // The shortest text that reads back as `v` has at most 24 characters.
    const auto end = std::to_chars(std::begin(digits), std::end(digits), v).ptr;
    out.append(digits, end);
  }
}

void AppendNumber(std::string& out, std::uint64_t v) { out += std::to_string(v); }

// `a="x",b="y"`, without braces.
std::string LabelText(const std::vector<std::string>& names, const Registry::LabelValues& values) {
  std::string out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += ',';
    out += names[i];
    out += "=\"";
    AppendEscaped(out, values[i], true);
    out += '"';
  }
  return out;
}

template <typename Number>
void AppendSample(std::string& out, std::string_view name, std::string_view suffix, std::string_view labels,
                  Number value) {
  out += name;
  out += suffix;
  if (!labels.empty()) {
    out += '{';
    out += labels;
    out += '}';
  }
  out += ' ';
  AppendNumber(out, value);
  out += '\n';
}

}  // namespace

Histogram::Histogram(std::vector<double> upper_bounds)
    : bounds_(std::move(upper_bounds)), buckets_(bounds_.size() + 1) {
  assert(std::is_sorted(bounds_.begin(), bounds_.end(), std::less_equal<>()) && "bounds must ascend");
}

void Histogram::Observe(double v) {
  // A value equal to a bound belongs to that bound's bucket. NaN is above every bound, as in other clients.
  const auto bucket = std::isnan(v) ? bounds_.end() : std::lower_bound(bounds_.begin(), bounds_.end(), v);
  buckets_[static_cast<std::size_t>(bucket - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(v, std::memory_order_relaxed);
}

struct Registry::Impl {
  mutable std::mutex mutex;  // Guards `families`; the cells are atomic.
  std::map<std::string, Family, std::less<>> families;

  // REQUIRES: `mutex` is held.
  Family& FindFamily(Type type, std::string_view name, std::string_view help, std::vector<std::string> label_names) {
    assert(IsName(name, false) && "not a metric name");
    auto it = families.find(name);
    if (it == families.end()) {
      assert(std::all_of(label_names.begin(), label_names.end(), [](auto& n) { return IsName(n, true); }));
      it = families.emplace(name, Family{type, std::string(help), std::move(label_names), {}, {}}).first;
    } else {
      assert(it->second.type == type && it->second.help == help && it->second.label_names == label_names &&
             "one name, two meanings");
    }
    return it->second;
  }

  // The cell for these labels, empty if it is new. REQUIRES: `mutex` is held.
  Cell& Find(Type type, std::string_view name, std::string_view help, std::vector<std::string> label_names,
             LabelValues values) {
    assert(label_names.size() == values.size() && "one value for each label");
    return FindFamily(type, name, help, std::move(label_names)).cells[std::move(values)];
  }

  template <typename T>
  T& Get(Type type, std::string_view name, std::string_view help, std::vector<std::string> label_names,
         LabelValues values, const auto&... make) {
    std::lock_guard lock(mutex);
    Cell& cell = Find(type, name, help, std::move(label_names), std::move(values));
    auto* owned = std::get_if<std::unique_ptr<T>>(&cell);
    if (!owned || !*owned) owned = &cell.emplace<std::unique_ptr<T>>(std::make_unique<T>(make...));
    return **owned;
  }

  void Add(Type type, std::string_view name, std::string_view help, std::vector<std::string> label_names,
           LabelValues values, Read read) {
    std::lock_guard lock(mutex);
    Find(type, name, help, std::move(label_names), std::move(values)) = std::move(read);
  }
};

Registry::Registry() : impl_(std::make_unique<Impl>()) {}
Registry::~Registry() = default;

Counter& Registry::GetCounter(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                              LabelValues values) {
  return impl_->Get<Counter>(Type::kCounter, name, help, std::move(label_names), std::move(values));
}

Gauge& Registry::GetGauge(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                          LabelValues values) {
  return impl_->Get<Gauge>(Type::kGauge, name, help, std::move(label_names), std::move(values));
}

Histogram& Registry::GetHistogram(std::string_view name, std::string_view help, const std::vector<double>& bounds,
                                  std::vector<std::string> label_names, LabelValues values) {
  return impl_->Get<Histogram>(Type::kHistogram, name, help, std::move(label_names), std::move(values), bounds);
}

void Registry::AddGaugeFunction(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                                LabelValues values, std::function<double()> read) {
  impl_->Add(Type::kGauge, name, help, std::move(label_names), std::move(values), std::move(read));
}

void Registry::AddGaugeFamily(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                              std::function<Samples()> read) {
  std::lock_guard lock(impl_->mutex);
  impl_->FindFamily(Type::kGauge, name, help, std::move(label_names)).read_all = std::move(read);
}

void Registry::AddCounterFamily(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                                std::function<Samples()> read) {
  std::lock_guard lock(impl_->mutex);
  impl_->FindFamily(Type::kCounter, name, help, std::move(label_names)).read_all = std::move(read);
}

void Registry::AddCounterFunction(std::string_view name, std::string_view help, std::vector<std::string> label_names,
                                  LabelValues values, std::function<double()> read) {
  impl_->Add(Type::kCounter, name, help, std::move(label_names), std::move(values), std::move(read));
}

std::string Registry::Text() const {
  // Collect the cells under the lock and read them after it: functions may take locks of their own.
  struct Sample {
    std::string labels;
    std::variant<const Counter*, const Gauge*, const Histogram*, Read> source;
  };
  struct Shown {
    std::string_view name;
    const Family* family;  // Never removed; only its `cells` change.
    std::vector<Sample> samples;
    std::function<Samples()> read_all;
  };
  std::vector<Shown> shown;
  {
    std::lock_guard lock(impl_->mutex);
    for (const auto& [name, family] : impl_->families) {
      Shown& one = shown.emplace_back(Shown{name, &family, {}, family.read_all});
      for (const auto& [values, cell] : family.cells) {
        Sample& sample = one.samples.emplace_back(Sample{LabelText(family.label_names, values), {}});
        if (auto* counter = std::get_if<0>(&cell)) sample.source = counter->get();
        if (auto* gauge = std::get_if<1>(&cell)) sample.source = gauge->get();
        if (auto* histogram = std::get_if<2>(&cell)) sample.source = histogram->get();
        if (auto* read = std::get_if<3>(&cell)) sample.source = *read;
      }
    }
  }

  std::string out;
  for (const auto& [name, family, samples, read_all] : shown) {
    out.append("# HELP ").append(name) += ' ';
    AppendEscaped(out, family->help, false);
    out.append("\n# TYPE ").append(name).append(" ").append(ToString(family->type)) += '\n';
    for (const Sample& sample : samples) {
      if (auto* counter = std::get_if<0>(&sample.source)) {
        AppendSample(out, name, "", sample.labels, (*counter)->value());
      } else if (auto* gauge = std::get_if<1>(&sample.source)) {
        AppendSample(out, name, "", sample.labels, (*gauge)->value());
      } else if (auto* read = std::get_if<3>(&sample.source)) {
        AppendSample(out, name, "", sample.labels, (*read)());
      } else {
        const Histogram& histogram = *std::get<2>(sample.source);
        std::uint64_t count = 0;  // Of the buckets so far: they are cumulative, and the last is the total.
        for (std::size_t i = 0; i < histogram.buckets_.size(); ++i) {
          count += histogram.buckets_[i].load(std::memory_order_relaxed);
          std::string labels = sample.labels + (sample.labels.empty() ? "le=\"" : ",le=\"");
          if (i < histogram.bounds_.size()) {
            AppendNumber(labels, histogram.bounds_[i]);
          } else {
            labels += "+Inf";
          }
          labels += '"';
          AppendSample(out, name, "_bucket", labels, count);
        }
        AppendSample(out, name, "_sum", sample.labels, histogram.sum_.load(std::memory_order_relaxed));
        AppendSample(out, name, "_count", sample.labels, count);
      }
    }
    if (!read_all) continue;
    for (const auto& [values, value] : read_all()) {
      AppendSample(out, name, "", LabelText(family->label_names, values), value);
    }
  }
  return out;
}

}  // namespace kube

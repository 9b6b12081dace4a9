// SPDX-License-Identifier: Apache-2.0
// Plays what a job does, phase by phase, and samples it as exporters and Prometheus do: at intervals that are not quite
// even, of the last moment only, rounded to hundredths, with noise, with samples that are missing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>
#include <vector>

#include "controllers/telemetry/job_series.h"

namespace grus::stories {

// The same numbers on each machine: the distributions of the standard library are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double Uniform(double from, double to) { return from + (to - from) * static_cast<double>(engine_() >> 11) * 0x1p-53; }
  bool Chance(double probability) { return Uniform(0, 1) < probability; }
  double Exponential(double mean) { return -mean * std::log(1 - Uniform(0, 1)); }
  double Normal(double mean, double deviation) {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform(0, 1)));
    return mean + deviation * radius * std::cos(2 * std::numbers::pi * Uniform(0, 1));
  }
  double LogNormal(double median, double sigma) { return median * std::exp(Normal(0, sigma)); }
  template <typename T>
  T Pick(std::initializer_list<T> of) {
    return of.begin()[static_cast<std::size_t>(Uniform(0, static_cast<double>(of.size())))];
  }

 private:
  std::mt19937_64 engine_;
};

struct Phase {
  double seconds = 0;
  double gpu = 0, bandwidth = 0, cpu = 0;    // Shares.
  double network = 0, disk = 0;              // Bytes a second.
  double memory = 8.0 * 1024 * 1024 * 1024;  // Bytes.
};

struct Sampling {
  double step = 10;       // Seconds.
  double missing = 0.02;  // Share of the samples.
  double outage = 0;      // Seconds without any, somewhere in the middle.
  double noise = 0.04;    // Of a share, while something works.
  double inertia = 0.5;   // Of the noise, from one sample to the next.
};

inline float Rounded(double share) { return static_cast<float>(std::round(100 * std::clamp(share, 0.0, 1.0)) / 100); }

inline JobSeries Play(std::span<const Phase> phases, const Sampling& how, Random& random) {
  double length = 0;
  for (const Phase& phase : phases) length += phase.seconds;
  const auto count = std::min<std::size_t>(10080, static_cast<std::size_t>(length / how.step));
  const double outage_at = random.Uniform(0.3, 0.7) * length;
  JobSeries job;
  Series* const all[] = {&job.gpu_utilization, &job.gpu_memory, &job.memory_bandwidth, &job.cpu,
                         &job.network,         &job.disk};
  for (Series* series : all) series->step = how.step, series->start = 1790000000;
  double noise = 0, other_noise = 0, end = 0;
  std::size_t at = 0;
  for (std::size_t sample = 0; sample < count; ++sample) {
    const double time = how.step * (static_cast<double>(sample) + random.Uniform(0, 0.15));
    while (at + 1 < phases.size() && end + phases[at].seconds <= time) end += phases[at++].seconds;
    const Phase& phase = phases[at];
    const double fresh = how.noise * std::sqrt(1 - how.inertia * how.inertia);
    noise = how.inertia * noise + random.Normal(0, fresh);
    other_noise = how.inertia * other_noise + random.Normal(0, fresh);
    const auto share = [](double level, double off) { return level < 0.02 ? 0 : Rounded(level + off); };
    const float values[] = {share(phase.gpu, noise),
                            static_cast<float>(phase.memory),
                            share(phase.bandwidth, phase.bandwidth * noise),
                            share(phase.cpu, other_noise),
                            static_cast<float>(phase.network * random.LogNormal(1, 0.15)),
                            static_cast<float>(phase.disk * random.LogNormal(1, 0.15))};
    const bool is_out = time >= outage_at && time < outage_at + how.outage;
    const bool is_gpu_missing = is_out || random.Chance(how.missing),
               is_rest_missing = is_out || random.Chance(how.missing);
    for (std::size_t one = 0; one < std::size(all); ++one) {
      all[one]->values.push_back((one < 3 ? is_gpu_missing : is_rest_missing) ? NAN : values[one]);
    }
  }
  // Counters start again from zero when a container does: one rate is wrong.
  if (count > 0 && random.Chance(0.3)) {
    job.network.values[static_cast<std::size_t>(random.Uniform(0, static_cast<double>(count)))] = 0;
  }
  return job;
}

}  // namespace grus::stories

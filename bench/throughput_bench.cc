// SPDX-License-Identifier: Apache-2.0
// What fitting a throughput model and asking it cost, in CPU time on one thread.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "controllers/throughput/curve.h"

namespace {

using grus::Measurement;

// A job whose gradients go around a ring, with a scatter of 8 % that is the same in each run.
std::vector<Measurement> Trial(int count) {
  std::vector<Measurement> measurements;
  for (int i = 0; i < count; ++i) {
    const int nodes = 1 + i % 4, replicas = nodes * (1 + i / 4 % 2);
    const double batch = i / 8 % 2 == 0 ? 16 : 64;
    const double sync = nodes > 1 ? 0.12 * 2 * (nodes - 1) / nodes : replicas > 1 ? 0.02 : 0;
    const double seconds = std::hypot(0.05 + 0.004 * batch, sync) * (1 + 0.08 * std::sin(7.0 * i));
    measurements.push_back({{nodes, replicas, batch}, seconds});
  }
  return measurements;
}

void Fit(benchmark::State& state) {
  const std::vector<Measurement> measurements = Trial(static_cast<int>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(grus::FitThroughput(measurements));
}
BENCHMARK(Fit)->Arg(1)->Arg(3)->Arg(8)->Arg(15)->Arg(60)->Arg(200)->Unit(benchmark::kMillisecond);

void Curve(benchmark::State& state) {
  const auto fit = grus::FitThroughput(Trial(15));
  grus::CurveQuestion question;
  question.sizes = grus::DoublingSizes(64, 4);
  question.batch_size = 32;
  for (auto _ : state) benchmark::DoNotOptimize(grus::CurveOf(*fit, question));
}
BENCHMARK(Curve)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();

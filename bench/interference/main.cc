// SPDX-License-Identifier: Apache-2.0
// Prints how well InterferenceModel tells co-runs that it has not seen, of the public tables. Usage:
// interference_bench [DATA [SEEDS]]; DATA is bench/data unless told.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench/interference/left_out.h"
#include "bench/interference/public_co_runs.h"
#include "controllers/interference/interference_model.h"

namespace grus {
namespace {

void Print(const std::string& what, const std::function<LeftOutFigures()>& figures_of) {
  const auto start = std::chrono::steady_clock::now();
  const LeftOutFigures figures = figures_of();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%-58s %6.1f %6.1f %6.1f %6.1f   %5.1f s\n", what.c_str(), 100 * figures.slow_down_error,
              100 * figures.speed_error, 100 * figures.constant_error, 100 * figures.in_interval, seconds.count());
  std::fflush(stdout);
}

std::vector<CoRunSample> Must(kube::Result<std::vector<CoRunSample>> samples) {
  if (samples) return *std::move(samples);
  std::fprintf(stderr, "interference_bench: %s\n", samples.error().message().c_str());
  std::exit(1);
}

void PrintAlnair(const std::string& data) {
  const std::vector<CoRunSample> samples = Must(LoadAlnair(data));
  Print("Alnair, a job never seen", [&] { return LeaveOutEach(samples, LeftOutUnit::kJob, true); });
  Print("Alnair, a job never seen, as partner too", [&] { return LeaveOutEach(samples, LeftOutUnit::kJob, false); });
  Print("Alnair, a job of which 3 pairs were seen", [&] { return LeaveOutEach(samples, LeftOutUnit::kJob, true, 3); });
  Print("Alnair, a family never seen", [&] { return LeaveOutEach(samples, LeftOutUnit::kFamily, true); });
  Print("Alnair, a family never seen, as partner too",
        [&] { return LeaveOutEach(samples, LeftOutUnit::kFamily, false); });
}

void PrintGavel(const std::string& data, std::uint32_t seeds) {
  const auto over_seeds = [&](const std::vector<CoRunSample>& samples, const std::string& type, bool knows_others) {
    std::vector<LeftOutFigures> figures;
    for (std::uint32_t seed = 1; seed <= seeds; ++seed) {
      figures.push_back(KnowAFifth(samples, type, knows_others, seed));
    }
    return MeanOf(figures);
  };
  for (const bool hides_names : {false, true}) {
    const std::string what = hides_names ? "Gavel without names, a fifth known, " : "Gavel, a fifth known, ";
    for (const char* type : {"k80", "p100", "v100"}) {
      Print(what + type, [&] { return over_seeds(Must(LoadGavel(data, {type}, hides_names)), type, false); });
    }
    const std::vector<CoRunSample> both = Must(LoadGavel(data, {"p100", "v100"}, hides_names));
    Print(what + "v100 and p100: v100", [&] { return over_seeds(both, "v100", false); });
    Print(what + "v100, all on p100: v100", [&] { return over_seeds(both, "v100", true); });
  }
}

void PrintFitTime(const std::string& data) {
  const std::vector<CoRunSample> samples = Must(LoadGavel(data, {"k80", "p100", "v100"}));
  for (const std::size_t count : {250u, 500u, 1000u, 1500u}) {
    const std::vector<CoRunSample> some(samples.begin(), samples.begin() + static_cast<std::ptrdiff_t>(count));
    const auto start = std::chrono::steady_clock::now();
    const auto model = InterferenceModel::Fit(some);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    constexpr int kTimes = 100;
    const auto asked = std::chrono::steady_clock::now();
    for (int i = 0; i < kTimes; ++i) model->Predict({{some[0].job, some[1].partner, "v100"}});
    const std::chrono::duration<double, std::milli> answer = std::chrono::steady_clock::now() - asked;
    std::printf("a fit to %zu co-runs takes %.2f s, a prediction from it %.2f ms\n", model->samples().size(),
                seconds.count(), answer.count() / kTimes);
  }
}

}  // namespace
}  // namespace grus

int main(int argc, char** argv) {
  const std::string data = argc > 1 ? argv[1] : "bench/data";
  const auto seeds = static_cast<std::uint32_t>(argc > 2 ? std::atoi(argv[2]) : 20);
  std::printf("mean error in %%, of co-runs that the fit has not seen    slow-  speed constant  in 90 %%\n");
  std::printf("%-58s %6s %6s %6s %6s\n", "", "down", "", "slow-d.", "band");
  grus::PrintAlnair(data);
  grus::PrintGavel(data, seeds);
  grus::PrintFitTime(data);
}

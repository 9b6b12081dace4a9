// SPDX-License-Identifier: Apache-2.0
// Replays jobs that share GPUs, by Gavel's measured pairs, and prints what grus gains over other policies. Usage:
// interference_replay DATA SEEDS FIRST_SEED LENGTHS JOBS LOAD [each]; LENGTHS is uniform, exponential or gavel, LOAD a
// number or `all`, and `each` prints the figures of each seed too.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "bench/interference/public_co_runs.h"
#include "bench/interference/replay/replay_sides.h"
#include "controllers/interference/gpu_choice.h"

namespace grus {
namespace {

struct ReplayArguments {
  std::string data = {};
  std::uint32_t seeds = 0, first_seed = 0;
  WorkLengths lengths = WorkLengths::kUniform;
  std::size_t jobs = 200;
  std::vector<double> loads = {};
  bool prints_each = false;
};

struct Comparison {
  const char* text;
  Side side, other;
};
constexpr Comparison kComparisons[] = {
    {"grus against best fit", Side::kGrus, Side::kBestFit},
    {"  that has drawn sizes", Side::kGrus, Side::kBestFitOtherSizes},
    {"  that takes free GPUs first", Side::kGrus, Side::kBestFitFreeFirst},
    {"grus against exclusive GPUs", Side::kGrus, Side::kExclusive},
    {"best fit against exclusive GPUs", Side::kBestFit, Side::kExclusive},
    {"all pairs known, against best fit", Side::kGrusAllKnown, Side::kBestFit},
};

std::vector<CoRunSample> MustLoad(const std::string& data, const std::vector<std::string>& types) {
  auto samples = LoadGavel(data, types);
  if (samples) return *std::move(samples);
  std::fprintf(stderr, "interference_replay: %s\n", samples.error().message().c_str());
  std::exit(1);
}

void PrintGain(const char* text, const SideGain& gain) {
  std::printf("  %-36s %+6.1f %+6.1f %+6.1f %+6.1f\n", text, gain.work_a_busy_second, gain.work_a_gpu_second,
              gain.mean_jct, gain.makespan);
}

void PrintLoad(const ReplayWorld& world, const std::vector<ReplayDraw>& draws, double load,
               const ReplayArguments& arguments) {
  std::map<const Comparison*, std::vector<SideGain>> gains;
  std::map<Side, double> longest_wait;
  for (const ReplayDraw& draw : draws) {
    std::map<Side, SharingFigures> figures = ReplaySides(world, draw, arguments.jobs, load, arguments.lengths);
    for (const Comparison& c : kComparisons) gains[&c].push_back(GainOver(figures[c.side], figures[c.other]));
    for (const auto& [side, of_side] : figures) longest_wait[side] += of_side.longest_wait;
    if (!arguments.prints_each) continue;
    std::printf("%s, load %.1f, seed %u\n", world.gpu_type.c_str(), load, draw.seed);
    for (const Comparison& c : kComparisons) PrintGain(c.text, gains[&c].back());
  }
  std::printf("%s, load %.1f: median of %zu seeds\n", world.gpu_type.c_str(), load, draws.size());
  for (const Comparison& c : kComparisons) PrintGain(c.text, MedianOf(gains[&c]));
  PrintGain("the worst seed against best fit", WorstOf(gains[&kComparisons[0]]));
  PrintGain("the worst seed against exclusive", WorstOf(gains[&kComparisons[3]]));
  const auto count = static_cast<double>(draws.size());
  std::printf("  longest wait, mean over seeds: grus %.2f, best fit %.2f, exclusive %.2f mean lengths\n",
              longest_wait[Side::kGrus] / count, longest_wait[Side::kBestFit] / count,
              longest_wait[Side::kExclusive] / count);
  std::fflush(stdout);
}

template <typename Action>
double MillisecondsOf(const Action& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// Of GPUs that are free or have one job; and of those that may have two.
void PrintTime(const ReplayWorld& world) {
  constexpr std::size_t kGpus = 5000, kTimes = 20;
  const std::vector<std::string>& kinds = world.speeds.kinds();
  for (const std::size_t most : {1u, 2u}) {
    std::vector<CandidateGpu> gpus(kGpus);
    for (std::size_t i = 0; i < kGpus; ++i) {
      gpus[i].name = "gpu-" + std::to_string(i);
      for (std::size_t r = 0; r < i % (most + 1); ++r) {
        gpus[i].residents.push_back({kinds[(i / (r == 0 ? 1 : kinds.size())) % kinds.size()], "", {}});
      }
    }
    PairSpeedCache cache(world.all_known);
    const auto choose = [&] { ChooseGpu({kinds[0], "", {}}, gpus, {world.gpu_type, kGpus, kGpus}, cache); };
    const double cold = MillisecondsOf(choose);
    const double warm = MillisecondsOf([&] {
                          for (std::size_t i = 0; i < kTimes; ++i) {
                            choose();
                          }
                        }) /
                        kTimes;
    std::printf(
        "a choice among %zu GPUs with up to %zu jobs, predictions known: %.2f ms; the first, %zu predictions: %.0f "
        "ms\n",
        kGpus, most, warm, cache.size(), cold);
  }
}

void Run(const ReplayArguments& arguments) {
  const std::vector<std::string> types = {"v100", "p100", "k80"};
  std::set<std::string> names;
  for (const CoRunSample& sample : MustLoad(arguments.data, types)) names.insert(sample.job.fingerprint);
  const std::vector<std::string> kinds(names.begin(), names.end());
  std::printf("%-38s %6s %6s %6s %6s\n", "difference in %", "work/", "work/", "mean", "make-");
  std::printf("%-38s %6s %6s %6s %6s\n", "", "busy s", "GPU s", "JCT", "span");
  for (const std::string& type : types) {
    const ReplayWorld world = MakeWorld(MustLoad(arguments.data, {type}), type, kinds);
    std::vector<ReplayDraw> draws;
    double above = 0;
    for (std::uint32_t i = 0; i < arguments.seeds; ++i) {
      draws.push_back(Draw(world, arguments.first_seed + i));
      above += 100 * draws.back().above_low_end / arguments.seeds;
    }
    for (const double load : arguments.loads) PrintLoad(world, draws, load, arguments);
    std::printf("%s: %.1f %% of the pairs that are not known gain what they are taken to gain, or more\n", type.c_str(),
                above);
    if (type == "v100") PrintTime(world);
  }
}

}  // namespace
}  // namespace grus

int main(int argc, char** argv) {
  using grus::WorkLengths;
  const std::map<std::string, WorkLengths> lengths = {
      {"uniform", WorkLengths::kUniform}, {"exponential", WorkLengths::kExponential}, {"gavel", WorkLengths::kGavel}};
  const auto length = lengths.find(argc > 6 ? argv[4] : "");
  const int seeds = argc > 6 ? std::atoi(argv[2]) : 0, jobs = argc > 6 ? std::atoi(argv[5]) : 0;
  std::vector<double> loads = {1.0, 1.5, 2.0, 2.5};
  if (argc > 6 && std::string(argv[6]) != "all") loads = {std::atof(argv[6])};
  if (length == lengths.end() || seeds < 1 || jobs < 1 || !(loads[0] > 0)) {
    std::fputs("usage: interference_replay DATA SEEDS FIRST_SEED uniform|exponential|gavel JOBS LOAD|all [each]\n",
               stderr);
    return 2;
  }
  const auto first_seed = static_cast<std::uint32_t>(std::atoi(argv[3]));
  grus::Run({argv[1], static_cast<std::uint32_t>(seeds), first_seed, length->second, static_cast<std::size_t>(jobs),
             loads, argc > 7});
}

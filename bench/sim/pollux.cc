// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>
#include <string>
#include <utility>

#include "bench/sim/options.h"
#include "bench/sim/pollux_grus.h"
#include "bench/sim/pollux_replay.h"
#include "bench/sim/pollux_tiresias.h"
#include "controllers/policy/decimal.h"

namespace grus {
namespace {

constexpr std::string_view kOptions[] = {"workload", "traces", "policy",        "curves",          "curve-error",
                                         "draw",     "seed",   "start-seconds", "restart-seconds", "policy-speedup"};
constexpr unsigned kMostDrawn = 10'000;
constexpr std::string_view kFlags[] = {"adaptive"};

kube::Error Invalid(std::string message) { return {kube::ErrorCode::kInvalidArgument, std::move(message)}; }

// The value of `name` if it is given, else the first of `allowed`.
kube::Result<std::string> OneOf(const Options& options, std::string_view name,
                                std::span<const std::string_view> allowed) {
  const auto found = options.find(name);
  if (found == options.end()) return std::string(allowed[0]);
  std::string choices;
  for (const std::string_view choice : allowed) {
    if (found->second == choice) return found->second;
    choices += (choices.empty() ? "" : " or ") + std::string(choice);
  }
  return Invalid("--" + std::string(name) + " \"" + found->second + "\": write " + choices);
}

kube::Result<unsigned> Number(const Options& options, std::string_view name, unsigned unless_given, unsigned most) {
  const auto found = options.find(name);
  if (found == options.end()) return unless_given;
  const auto number = ParseInteger(found->second);
  if (number && *number >= 0 && *number <= most) return static_cast<unsigned>(*number);
  return Invalid("--" + std::string(name) + " \"" + found->second + "\": write a whole number from 0 to " +
                 std::to_string(most));
}

kube::Result<GrusPolicyOptions> CurveOptions(const Options& options) {
  static constexpr std::string_view kCurves[] = {"measured", "none"};
  const auto curves = OneOf(options, "curves", kCurves);
  if (!curves) return curves.error();
  const auto error = Number(options, "curve-error", 0, 100);
  if (!error) return error.error();
  const auto seed = Number(options, "seed", 1, ~0U);
  if (!seed) return seed.error();
  return GrusPolicyOptions{*curves == "measured", static_cast<int>(*error), *seed};
}

kube::Result<Standstills> StandstillOptions(const Options& options) {
  const auto start = Number(options, "start-seconds", 30, 3600);
  if (!start) return start.error();
  const auto restart = Number(options, "restart-seconds", 30, 3600);
  if (!restart) return restart.error();
  return Standstills{static_cast<double>(*start), static_cast<double>(*restart)};
}

kube::Result<ReplayResult> Run(std::span<const std::string_view> arguments) {
  static constexpr std::string_view kPolicies[] = {"grus", "tiresias"};
  const auto options = ReadOptions(arguments, kOptions, kFlags);
  if (!options) return options.error();
  const auto workload = Required(*options, "workload");
  if (!workload) return workload.error();
  const auto traces = Required(*options, "traces");
  if (!traces) return traces.error();
  if (const auto given = Required(*options, "policy"); !given) return given.error();
  const auto policy = OneOf(*options, "policy", kPolicies);
  if (!policy) return policy.error();
  auto grus_options = CurveOptions(*options);
  if (!grus_options) return grus_options.error();
  const auto standstills = StandstillOptions(*options);
  if (!standstills) return standstills.error();
  grus_options->restart_s = standstills->restart_s;
  const auto speedup = Number(*options, "policy-speedup", 1, 1000);
  if (!speedup) return speedup.error();
  grus_options->speedup = std::max(1U, *speedup);
  const auto draw = Number(*options, "draw", 0, kMostDrawn);
  if (!draw) return draw.error();

  const auto applications = LoadApplications(*traces);
  if (!applications) return applications.error();
  const BatchSize batch_size = options->contains("adaptive") ? BatchSize::kAdaptive : BatchSize::kAsSubmitted;
  auto jobs = LoadWorkload(*workload, *applications, batch_size);
  if (!jobs) return jobs.error();
  if (*draw > 0) jobs = DrawWorkload(*jobs, *draw, grus_options->seed);
  TiresiasPolicy tiresias;
  GrusPolicy grus(*grus_options);
  if (*policy == "tiresias") return Replay(*std::move(jobs), tiresias, *standstills);
  return Replay(*std::move(jobs), grus, *standstills);
}

void Print(const ReplayResult& result, std::ostream& out) {
  std::array<char, 400> text;
  std::snprintf(text.data(), text.size(),
                "average completion time  %10.1f s  %7.3f h\n"
                "p99 completion time      %10.1f s  %7.3f h\n"
                "makespan                 %10.1f s  %7.3f h\n"
                "restarts a job           %10.2f\n"
                "{\"avg_jct_s\":%.1f,\"p99_jct_s\":%.1f,\"makespan_s\":%.1f,\"restarts_a_job\":%.2f}\n",
                result.average_s, result.average_s / 3600, result.p99_s, result.p99_s / 3600, result.makespan_s,
                result.makespan_s / 3600, result.restarts_per_job, result.average_s, result.p99_s, result.makespan_s,
                result.restarts_per_job);
  out << text.data();
}

}  // namespace

int RunPollux(std::span<const std::string_view> arguments, std::ostream& out, std::ostream& error) {
  if (arguments.size() == 1 && arguments[0] == "--help") {
    out << kPolluxHelp;
    return 0;
  }
  const kube::Result<ReplayResult> result = Run(arguments);
  if (!result) {
    error << "grus-sim pollux: " << result.error().message() << '\n';
    return 2;
  }
  Print(*result, out);
  return 0;
}

}  // namespace grus

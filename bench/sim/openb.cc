// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <ostream>
#include <string>

#include "bench/sim/csv.h"
#include "bench/sim/openb_planner.h"
#include "bench/sim/openb_replay.h"
#include "bench/sim/options.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Result;

constexpr int kWrongUse = 2;

constexpr char kPlanner[] = "planner";

struct Question {
  std::string nodes, pods;  // Paths.
  OpenbPolicy policy;       // Of the planner: without a function.
  Ties ties = Ties::kRandom;
  std::uint64_t seed = 1;
};

Result<OpenbPolicy> PolicyOf(const std::string& name) {
  if (name == kPlanner) return OpenbPolicy{.name = kPlanner, .place = nullptr, .ties = Ties::kName};
  const auto found = std::ranges::find(OpenbPolicies(), name, &OpenbPolicy::name);
  if (found != OpenbPolicies().end()) return *found;
  return Error(ErrorCode::kInvalidArgument, "--policy " + name + ": give grus, planner, fgd or bestfit");
}

Result<std::uint64_t> SeedOf(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return seed;
  return Error(ErrorCode::kInvalidArgument, "--seed " + text + ": give a whole number, 0 or more");
}

Result<Question> ReadQuestion(std::span<const std::string_view> arguments) {
  constexpr std::string_view kKnown[] = {"nodes", "pods", "policy", "seed", "ties"};
  const Result<Options> options = ReadOptions(arguments, kKnown);
  if (!options) return options.error();
  const Result<std::string> nodes = Required(*options, "nodes");
  if (!nodes) return nodes.error();
  const Result<std::string> pods = Required(*options, "pods");
  if (!pods) return pods.error();
  const Result<std::string> name = Required(*options, "policy");
  if (!name) return name.error();
  const Result<OpenbPolicy> policy = PolicyOf(*name);
  if (!policy) return policy.error();
  Question question{*nodes, *pods, *policy, policy->ties};
  if (const auto given = options->find("seed"); given != options->end()) {
    const Result<std::uint64_t> seed = SeedOf(given->second);
    if (!seed) return seed.error();
    question.seed = *seed;
  }
  if (const auto given = options->find("ties"); given != options->end()) {
    if (given->second != "random" && given->second != "name") {
      return Error(ErrorCode::kInvalidArgument, "--ties " + given->second + ": give random or name");
    }
    if (question.policy.name == kPlanner) {
      return Error(ErrorCode::kInvalidArgument, "--ties: the planner has none; leave the option out");
    }
    question.ties = given->second == "random" ? Ties::kRandom : Ties::kName;
  }
  return question;
}

Result<OpenbTrace> ReadTrace(const Question& question) {
  const Result<CsvTable> nodes = ReadCsvFile(question.nodes);
  if (!nodes) return nodes.error();
  const Result<CsvTable> pods = ReadCsvFile(question.pods);
  if (!pods) return pods.error();
  return ReadOpenbTrace(*nodes, *pods);
}

void Print(std::ostream& out, const Question& question, const OpenbTrace& trace, const OpenbOutcome& outcome,
           double us_a_pod) {
  const std::string policy(question.policy.name);
  const char* ties = question.ties == Ties::kRandom ? "random" : "name";
  char text[512];
  std::snprintf(text, sizeof text,
                "cluster         %zu nodes, %.0f GPUs\n"
                "policy          %s, equal nodes by %s, seed %llu\n"
                "pods            %zu arrived, %zu placed, %zu dropped; %.1f us a pod\n"
                "GPUs allocated  %.2f %% once 100 %% was asked for, %.2f %% once 130 %% was\n",
                trace.nodes.size(), static_cast<double>(trace.gpu_milli()) / 1000, policy.c_str(), ties,
                static_cast<unsigned long long>(question.seed), outcome.arrived, outcome.placed.size(),
                outcome.arrived - outcome.placed.size(), us_a_pod, outcome.allocated_percent_100,
                outcome.allocated_percent_130);
  out << text;
  std::snprintf(text, sizeof text,
                R"({"policy":"%s","ties":"%s","seed":%llu,"arrived":%zu,"placed":%zu,)"
                R"("allocated_percent_100":%.4f,"allocated_percent_130":%.4f})"
                "\n",
                policy.c_str(), ties, static_cast<unsigned long long>(question.seed), outcome.arrived,
                outcome.placed.size(), outcome.allocated_percent_100, outcome.allocated_percent_130);
  out << text;
}

}  // namespace

int RunOpenb(std::span<const std::string_view> arguments, std::ostream& out, std::ostream& error) {
  if (arguments.size() == 1 && arguments[0] == "--help") {
    out << kOpenbHelp;
    return 0;
  }
  const Result<Question> question = ReadQuestion(arguments);
  if (!question) {
    error << "grus-sim openb: " << question.error().message() << "; see grus-sim openb --help\n";
    return kWrongUse;
  }
  const Result<OpenbTrace> trace = ReadTrace(*question);
  if (!trace) {
    error << "grus-sim openb: " << trace.error().message() << "\n";
    return kWrongUse;
  }
  const auto start = std::chrono::steady_clock::now();
  const OpenbOutcome outcome = question->policy.place == nullptr
                                   ? ReplayThroughPlanner(*trace, question->seed)
                                   : ReplayOpenb(*trace, question->policy, question->ties, question->seed);
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
  Print(out, *question, *trace, outcome, took.count() / static_cast<double>(outcome.arrived));
  return 0;
}

}  // namespace grus

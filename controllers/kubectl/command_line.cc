// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/command_line.h"

#include <boost/program_options.hpp>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <ostream>
#include <sstream>

#include "controllers/kubectl/trial_fit.h"

namespace grus {
namespace {

namespace po = boost::program_options;

constexpr int kFailed = 1, kWrongUse = 2;

constexpr const char* kUsage =
    "Usage: kubectl grus trial fit --points FILE --predict FILE [--max-ratio RATIO]\n"
    "\n"
    "Says how long a training step takes at sizes that were not tried, from sizes that were.\n";

int SayWrongUse(std::ostream& error, const std::string& what) {
  error << "kubectl grus: " << what << "; see kubectl grus --help\n";
  return kWrongUse;
}

kube::Result<CsvText> ReadFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  // Reading is what finds out that a path is a folder.
  if (file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!file.is_open() || file.bad() || errno == EISDIR) {
    const int code = errno;
    return kube::Error(kube::ErrorCode::kNotFound,
                       path + ": cannot be read" + (code != 0 ? std::string(": ") + std::strerror(code) : ""));
  }
  return CsvText{path, text.str()};
}

int TrialFit(const po::variables_map& values, std::ostream& out, std::ostream& error) {
  FitOptions options;
  options.max_interval_ratio = values["max-ratio"].as<double>();
  if (!(options.max_interval_ratio >= 1)) return SayWrongUse(error, "--max-ratio must be 1 or more");
  const auto fail = [&](const kube::Error& why) {
    error << "kubectl grus: " << why.message() << "\n";
    return kFailed;
  };
  const kube::Result<CsvText> points = ReadFile(values["points"].as<std::string>());
  if (!points) return fail(points.error());
  const kube::Result<CsvText> wanted = ReadFile(values["predict"].as<std::string>());
  if (!wanted) return fail(wanted.error());
  const kube::Result<std::string> answer = PredictFromCsv(*points, *wanted, options);
  if (!answer) return fail(answer.error());
  out << *answer << std::flush;
  if (!out) return fail(kube::Error(kube::ErrorCode::kUnavailable, "the answer could not be written"));
  return 0;
}

}  // namespace

int RunCommand(int argc, const char* const* argv, std::ostream& out, std::ostream& error) {
  po::options_description description("Options", 100);
  description.add_options()
      ("points", po::value<std::string>()->value_name("FILE"),
       "CSV with the columns num_nodes, num_replicas, local_bsz (samples per replica and step), step_time (s).")
      ("predict", po::value<std::string>()->value_name("FILE"),
       "CSV with the columns num_nodes, num_replicas, local_bsz of the sizes that are asked for.")
      ("max-ratio", po::value<double>()->value_name("RATIO")->default_value(FitOptions{}.max_interval_ratio),
       "Answers whose 90 % band is wider than this (high / low) are Unknown.")
      ("help,h", "Print this help and exit.");
  po::options_description all;
  all.add(description).add_options()("command", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("command", -1);

  po::variables_map values;
  try {
    po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(), values);
  } catch (const po::error& wrong) {
    return SayWrongUse(error, wrong.what());
  }
  if (values.count("help") > 0) {
    out << kUsage << "\n" << description;
    return 0;
  }
  const auto command = values.count("command") > 0 ? values["command"].as<std::vector<std::string>>()
                                                   : std::vector<std::string>{};
  if (command != std::vector<std::string>{"trial", "fit"}) {
    return SayWrongUse(error, command.empty() ? "no command is given" : "there is no such command");
  }
  for (const char* needed : {"points", "predict"}) {
    if (values.count(needed) == 0) return SayWrongUse(error, std::string("trial fit needs --") + needed + " FILE");
  }
  return TrialFit(values, out, error);
}

}  // namespace grus

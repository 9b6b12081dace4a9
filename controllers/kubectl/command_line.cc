// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/command_line.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <fstream>
#include <ostream>

#include "clientlib/base/printable.h"
#include "clientlib/client/connection.h"
#include "controllers/kubectl/command_answer.h"
#include "controllers/kubectl/interference_command.h"
#include "controllers/kubectl/live_objects.h"
#include "controllers/kubectl/live_parts.h"
#include "controllers/kubectl/text_file.h"
#include "controllers/kubectl/top.h"
#include "controllers/kubectl/trial_export.h"
#include "controllers/kubectl/trial_fit.h"
#include "controllers/kubectl/trial_plot.h"
#include "controllers/kubectl/trial_read.h"
#include "controllers/kubectl/ungate.h"

namespace grus {
namespace {

namespace po = boost::program_options;

constexpr const char* kFitUsage =
    "kubectl grus trial fit (NAME [-n NAMESPACE] | --profile NAME | --points FILE) --predict FILE [--max-ratio RATIO]\n"
    "    predicts the time of a training step at sizes that were not tried, from those that a TrialJob or a\n"
    "    WorkloadProfile has, or a file.\n";
constexpr const char* kExportUsage =
    "kubectl grus trial export (NAME [-n NAMESPACE] | --profile NAME) [--output csv|json]\n"
    "    prints what a TrialJob has measured, or what a WorkloadProfile knows, for other programs and for trial fit.\n";
constexpr const char* kPlotUsage =
    "kubectl grus trial plot NAME [-n NAMESPACE] [--svg FILE]\n"
    "    draws the curve of a TrialJob: throughput over GPUs, with the knee.\n";

constexpr const char* kReadUsage =
    "kubectl grus trial read LOG [--gpus N] [--batch-size B] [--batch-size-scope PerGpu|PerJob] [--pattern "
    "PATTERN]...\n"
    "    says as JSON what a TrialJob would read from a log, and on which lines it stands. LOG is a file, such as the\n"
    "    output of kubectl logs --timestamps. Without timestamps, steps cannot be counted against the clock.\n";

constexpr const char* kUngateUsage =
    "kubectl grus ungate [-n NAMESPACE | -A] [--yes]\n"
    "    lifts the gates of pods that wait for a grus that is not running, even if their gangs are incomplete.\n"
    "    Without --yes it lists these pods and changes nothing.\n";

constexpr const char* kTopUsage =
    "kubectl grus top [-n NAMESPACE | -A] [--ended | --parts]\n"
    "    lists what the jobs that run use of their GPUs, those first whose GPUs idle most; or which container has "
    "which\n"
    "    part of which GPU, what it uses of it, and what is free.\n";

std::string TextOf(const po::variables_map& values, const char* option) {
  return values.count(option) > 0 ? values[option].as<std::string>() : std::string();
}

auto ConnectBy(const po::variables_map& values, const kube::Clock& clock, std::optional<kube::Duration> timeout = {},
               std::optional<std::size_t> body_limit = {}) {
  kube::ConnectOptions options;
  options.timeout = timeout;
  options.body_limit = body_limit;
  options.kubeconfig = TextOf(values, "kubeconfig");
  options.context = TextOf(values, "context");
  options.user_agent = "kubectl-grus";
  return kube::Connect(options, clock);
}

void AddConnectOptions(po::options_description& description, const char* of_namespace) {
  description.add_options()("namespace,n", po::value<std::string>()->value_name("NAMESPACE"), of_namespace)(
      "kubeconfig", po::value<std::string>()->value_name("FILE"),
      "Kubeconfig file. Default: $KUBECONFIG, else ~/.kube/config.")(
      "context", po::value<std::string>()->value_name("NAME"), "Context of the kubeconfig. Default: its current one.");
}

// The names that are given besides options.
std::vector<std::string> NamesIn(const po::variables_map& values) {
  return values.count("name") > 0 ? values["name"].as<std::vector<std::string>>() : std::vector<std::string>();
}

bool HasEmptyName(const po::variables_map& values) {
  const bool is_profile = values.count("profile") > 0 && TextOf(values, "profile").empty();
  return is_profile || std::ranges::count(NamesIn(values), std::string()) > 0;
}

// `T` is TrialJob or WorkloadProfile; of the latter the namespace does not count.
template <typename T>
kube::Result<std::shared_ptr<T>> ReadLive(const po::variables_map& values, const std::string& name) {
  kube::SystemClock clock;
  const auto connection = ConnectBy(values, clock);
  if (!connection) return connection.error();
  kube::ObjectKey key{"", name};
  if (kube::KindOf<T>().is_namespaced) key.ns = TextOf(values, "namespace");
  if (kube::KindOf<T>().is_namespaced && key.ns.empty()) key.ns = (*connection)->config.default_namespace;
  return GetLive<T>(*(*connection)->client, key);
}

struct MeasuredObject {
  std::string name;
  api::WorkloadProfileSpec measured;
};

// Of the TrialJob or the WorkloadProfile that the arguments name.
kube::Result<MeasuredObject> ReadMeasured(const po::variables_map& values) {
  if (const std::string profile = TextOf(values, "profile"); !profile.empty()) {
    const auto found = ReadLive<api::WorkloadProfile>(values, profile);
    if (!found) return found.error();
    return MeasuredObject{"WorkloadProfile " + profile, (*found)->spec};
  }
  const auto found = ReadLive<api::TrialJob>(values, NamesIn(values).front());
  if (!found) return found.error();
  return MeasuredObject{"TrialJob " + (*found)->metadata.Key().ToString(), MeasuredBy(**found)};
}

void AddMeasuredOptions(po::options_description& description) {
  AddConnectOptions(description, "Namespace of the TrialJob. Default: the context's.");
  description.add_options()("profile", po::value<std::string>()->value_name("NAME"), "A WorkloadProfile.")(
      "gpu-type", po::value<std::string>()->value_name("TYPE"), "Only what was measured on this GPU type.");
}

int TrialExport(const po::variables_map& values, std::ostream& out, std::ostream& error) {
  if (HasEmptyName(values) || NamesIn(values).size() + values.count("profile") != 1) {
    return SayWrongUse(error, "trial export needs the name of one TrialJob, or --profile NAME");
  }
  const std::string format = values["output"].as<std::string>();
  if (format != "csv" && format != "json") return SayWrongUse(error, "--output is csv or json");
  const auto object = ReadMeasured(values);
  if (!object) return SayFailed(error, object.error());
  const auto text = ExportPoints(object->measured, object->name, {format == "json", TextOf(values, "gpu-type")});
  return text ? Finish(out, error, *text) : SayFailed(error, text.error());
}

po::options_description ExportOptionsDescription() {
  po::options_description description("Options", 100);
  AddMeasuredOptions(description);
  description.add_options()("output,o", po::value<std::string>()->value_name("FORMAT")->default_value("csv"),
                            "csv or json.");
  return description;
}

// The measurements to fit, as a table: of a file, or of one GPU type of an object.
kube::Result<CsvText> PointsToFit(const po::variables_map& values) {
  if (values.count("points") > 0) return ReadCsvFile(values["points"].as<std::string>());
  const auto object = ReadMeasured(values);
  if (!object) return object.error();
  const auto type = ChooseType(object->measured, object->name, TextOf(values, "gpu-type"));
  if (!type) return type.error();
  const auto text = ExportPoints(object->measured, object->name, {false, *type});
  if (!text) return text.error();
  return CsvText{object->name, *text};
}

int TrialFit(const po::variables_map& values, std::ostream& out, std::ostream& error) {
  if (values.count("predict") == 0) return SayWrongUse(error, "trial fit needs --predict FILE");
  if (HasEmptyName(values) || NamesIn(values).size() + values.count("profile") + values.count("points") != 1) {
    return SayWrongUse(error, "trial fit needs one of: the name of a TrialJob, --profile NAME, --points FILE");
  }
  FitOptions options;
  options.max_interval_ratio = values["max-ratio"].as<double>();
  if (!(options.max_interval_ratio >= 1)) return SayWrongUse(error, "--max-ratio must be 1 or more");
  const kube::Result<CsvText> points = PointsToFit(values);
  if (!points) return SayFailed(error, points.error());
  const kube::Result<CsvText> wanted = ReadCsvFile(values["predict"].as<std::string>());
  if (!wanted) return SayFailed(error, wanted.error());
  const kube::Result<std::string> answer = PredictFromCsv(*points, *wanted, options);
  if (!answer) return SayFailed(error, answer.error());
  return Finish(out, error, *answer);
}

po::options_description FitOptionsDescription() {
  po::options_description description("Options", 100);
  AddMeasuredOptions(description);
  description.add_options()(
      "points", po::value<std::string>()->value_name("FILE"),
      "CSV with the columns num_nodes, num_replicas, local_bsz (samples per replica and step), step_time (s).")(
      "predict", po::value<std::string>()->value_name("FILE"),
      "CSV with the columns num_nodes, num_replicas, local_bsz of the sizes to predict.")(
      "max-ratio", po::value<double>()->value_name("RATIO")->default_value(FitOptions{}.max_interval_ratio),
      "Predictions whose 90 % band is wider than this (high / low) are Unknown: their step_time is a guess.");
  return description;
}

int TrialRead(const po::variables_map& values, std::ostream& out, std::ostream& error) {
  if (NamesIn(values).size() != 1) {
    return SayWrongUse(error, "trial read needs one file with a log");
  }
  LogSetting setting;
  setting.gpus = values["gpus"].as<int>();
  setting.batch_size = values["batch-size"].as<int>();
  if (setting.gpus < 1 || setting.batch_size < 0) {
    return SayWrongUse(error, "--gpus must be 1 or more, --batch-size 0 or more");
  }
  const std::string scope = values["batch-size-scope"].as<std::string>();
  if (scope != "PerGpu" && scope != "PerJob") return SayWrongUse(error, "--batch-size-scope is PerGpu or PerJob");
  setting.batch_scope = scope == "PerGpu" ? api::BatchSizeScope::kPerGpu : api::BatchSizeScope::kPerJob;
  if (values.count("pattern") > 0) {
    for (const std::string& text : values["pattern"].as<std::vector<std::string>>()) {
      const auto pattern = ParsePattern(text);
      if (!pattern) return SayWrongUse(error, pattern.error().message());
      setting.patterns.push_back(*pattern);
    }
  }
  const kube::Result<CsvText> log = ReadFile(NamesIn(values).front());
  if (!log) return SayFailed(error, log.error());
  const kube::Result<std::string> answer = ReadSpeeds(log->text, setting);
  return answer ? Finish(out, error, *answer) : SayFailed(error, answer.error());
}

po::options_description ReadOptionsDescription() {
  po::options_description description("Options", 100);
  description.add_options()("gpus", po::value<int>()->value_name("N")->default_value(1), "GPUs that the job ran on.")(
      "batch-size", po::value<int>()->value_name("B")->default_value(0),
      "The batch size that it was given. 0: what the log says, if it does.")(
      "batch-size-scope", po::value<std::string>()->value_name("SCOPE")->default_value("PerGpu"),
      "Whose batch that is: of each GPU (PerGpu) or of all of them (PerJob).")(
      "pattern", po::value<std::vector<std::string>>()->value_name("KIND[:SCOPE]=REGEX"),
      "As in measure.patterns, for example 'SamplesPerSecond:PerGpu=Speed: ([0-9.]+)'; may be repeated.");
  return description;
}

int TrialPlot(const po::variables_map& values, std::ostream& out, std::ostream& error) {
  if (NamesIn(values).size() != 1) {
    return SayWrongUse(error, "trial plot needs the name of one TrialJob");
  }
  const int width = values["width"].as<int>(), height = values["height"].as<int>();
  if (width < 1 || width > 400 || height < 1 || height > 200) {
    return SayWrongUse(error, "--width must be from 1 to 400, --height from 1 to 200");
  }
  const auto trial = ReadLive<api::TrialJob>(values, NamesIn(values).front());
  if (!trial) return SayFailed(error, trial.error());
  const std::string path = TextOf(values, "svg");
  if (path.empty()) {
    const kube::Result<std::string> text = PlotAsText(**trial, {width, height});
    return text ? Finish(out, error, *text) : SayFailed(error, text.error());
  }
  const kube::Result<std::string> svg = PlotAsSvg(**trial);
  if (!svg) return SayFailed(error, svg.error());
  std::ofstream file(path, std::ios::binary);
  file << *svg;
  file.close();
  if (!file) return SayFailed(error, {kube::ErrorCode::kUnavailable, path + ": cannot be written"});
  return 0;
}

po::options_description PlotOptionsDescription() {
  const PlotSize size;
  po::options_description description("Options", 100);
  AddConnectOptions(description, "Namespace of the TrialJob. Default: the context's.");
  description.add_options()("svg", po::value<std::string>()->value_name("FILE"), "Write an SVG image instead of text.")(
      "width", po::value<int>()->value_name("N")->default_value(size.width),
      "Characters in a line of a chart; at least 68.")(
      "height", po::value<int>()->value_name("N")->default_value(size.height), "Lines of a chart; at least 10.");
  return description;
}

// Of --namespace and --all-namespaces; empty: all of them. Nullopt: both are given.
std::optional<std::string> NamespaceIn(const po::variables_map& values, const std::string& default_namespace) {
  const bool is_everywhere = values["all-namespaces"].as<bool>();
  std::string ns = TextOf(values, "namespace");
  if (is_everywhere && !ns.empty()) return std::nullopt;
  return is_everywhere || !ns.empty() ? ns : default_namespace;
}
constexpr const char* kNotBoth = "give --namespace or --all-namespaces, not both";

void AddNamespaceOptions(po::options_description& description, const char* what) {
  AddConnectOptions(description, "Namespace. Default: the context's.");
  description.add_options()("all-namespaces,A", po::bool_switch(), what);
}

int Top(const po::variables_map& values, std::ostream& out, std::ostream& error) {
  if (!NamespaceIn(values, "")) return SayWrongUse(error, kNotBoth);
  const bool shows_parts = values["parts"].as<bool>();
  if (shows_parts && values["ended"].as<bool>()) return SayWrongUse(error, "give --parts or --ended, not both");
  kube::SystemClock clock;
  const auto connection = ConnectBy(values, clock);
  if (!connection) return SayFailed(error, connection.error());
  const std::string ns = *NamespaceIn(values, (*connection)->config.default_namespace);
  if (shows_parts) {
    const auto agents = ConnectBy(values, clock, kMetricsTimeout, kLongestMetrics);
    if (!agents) return SayFailed(error, agents.error());
    const auto text =
        TopParts(*(*connection)->client, *(*agents)->client, {ns, values["system-namespace"].as<std::string>()}, clock);
    if (!text) return SayFailed(error, text.error());
    for (const std::string& note : text->notes) error << kube::Printable(note) << "\n";
    return Finish(out, error, text->table);
  }
  const auto profiles = ListLive<api::WorkloadProfile>(*(*connection)->client, "");
  if (!profiles) return SayFailed(error, profiles.error());
  auto jobs = ListLive<api::ElasticHorovodJob>(*(*connection)->client, ns);
  if (!jobs) jobs = std::vector<std::shared_ptr<const api::ElasticHorovodJob>>();  // Then there are no ETAs.
  return Finish(out, error, TopText(*profiles, *jobs, {ns, values["ended"].as<bool>()}));
}

po::options_description TopOptionsDescription() {
  po::options_description description("Options", 100);
  AddNamespaceOptions(description, "The jobs of all namespaces.");
  description.add_options()("ended", po::bool_switch(), "Also runs that are over.")(
      "parts", po::bool_switch(), "Parts of GPUs and what is used of them, by grus-node-agent.")(
      "system-namespace", po::value<std::string>()->value_name("NAMESPACE")->default_value(kSystemNamespace),
      "With --parts: where the pods of grus-node-agent are.");
  return description;
}

int Ungate(const po::variables_map& values, std::ostream& out, std::ostream& error) {
  if (!NamespaceIn(values, "")) return SayWrongUse(error, kNotBoth);
  kube::SystemClock clock;
  const auto connection = ConnectBy(values, clock);
  if (!connection) return SayFailed(error, connection.error());
  const std::string ns = *NamespaceIn(values, (*connection)->config.default_namespace);
  return UngatePods(*(*connection)->client, ns, values["yes"].as<bool>(), out, error);
}

po::options_description UngateOptionsDescription() {
  po::options_description description("Options", 100);
  AddNamespaceOptions(description, "The pods of all namespaces.");
  description.add_options()("yes", po::bool_switch(), "Lift the gates.");
  return description;
}

struct Command {
  std::vector<std::string> words;
  const char* usage;
  po::options_description options;
  int (*run)(const po::variables_map& values, std::ostream& out, std::ostream& error);
};

}  // namespace

int RunCommand(int argc, const char* const* argv, std::ostream& out, std::ostream& error) {
  const Command commands[] = {
      {{"interference", "fit"}, kInterferenceFitUsage, InterferenceFitOptions(), InterferenceFit},
      {{"top"}, kTopUsage, TopOptionsDescription(), Top},
      {{"trial", "export"}, kExportUsage, ExportOptionsDescription(), TrialExport},
      {{"trial", "fit"}, kFitUsage, FitOptionsDescription(), TrialFit},
      {{"trial", "plot"}, kPlotUsage, PlotOptionsDescription(), TrialPlot},
      {{"trial", "read"}, kReadUsage, ReadOptionsDescription(), TrialRead},
      {{"ungate"}, kUngateUsage, UngateOptionsDescription(), Ungate}};
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) return SayWrongUse(error, "no command");
  const bool wants_help = std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return argument == "--help" || argument == "-h";
  });
  const auto command = std::find_if(std::begin(commands), std::end(commands), [&](const Command& c) {
    return arguments.size() >= c.words.size() && std::equal(c.words.begin(), c.words.end(), arguments.begin());
  });
  if (wants_help) {
    for (const Command& c : commands) {
      if (command == std::end(commands) || c.words == command->words) out << c.usage << "\n" << c.options << "\n";
    }
    return 0;
  }
  if (command == std::end(commands)) {
    const std::string second = arguments.size() >= 2 ? " " + arguments[1] : "";
    return SayWrongUse(error, "unknown command \"" + arguments[0] + second + "\"");
  }

  po::options_description all;
  all.add(command->options).add_options()("name", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  if (command->run != Ungate && command->run != Top) positional.add("name", -1);
  po::variables_map values;
  try {
    po::store(po::command_line_parser(
                  {arguments.begin() + static_cast<std::ptrdiff_t>(command->words.size()), arguments.end()})
                  .options(all)
                  .positional(positional)
                  .run(),
              values);
  } catch (const po::error& wrong) {
    return SayWrongUse(error, wrong.what());
  }
  return command->run(values, out, error);
}

}  // namespace grus

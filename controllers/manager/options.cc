// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>

#include "controllers/manager/version.h"

namespace grus {
namespace {

namespace po = boost::program_options;
using kube::Error;
using kube::ErrorCode;

constexpr const char* kControllers[] = {"elastic", "gang", "trial"};
constexpr std::string_view kNominations[] = {"auto", "always", "never", "pin"};  // In the order of the enumerators.

std::vector<std::string> SplitList(const std::string& text) {
  std::vector<std::string> items;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    item.erase(0, item.find_first_not_of(' '));
    item.erase(item.find_last_not_of(' ') + 1);
    if (!item.empty()) items.push_back(item);
  }
  return items;
}

Error Bad(const std::string& option, const std::string& value, const std::string& allowed) {
  return Error(ErrorCode::kInvalidArgument, "--" + option + " \"" + value + "\": expected " + allowed);
}

kube::Result<kube::LogLevel> LevelOf(const std::string& text) {
  if (text == "debug") return kube::LogLevel::kDebug;
  if (text == "info") return kube::LogLevel::kInfo;
  if (text == "warn") return kube::LogLevel::kWarn;
  if (text == "error") return kube::LogLevel::kError;
  return Bad("log-level", text, "debug, info, warn or error");
}

// What is checked before it becomes an option.
struct Texts {
  std::string controllers = "elastic,gang,trial", namespaces, level = "info", format = "text", nominations = "auto";
};

po::options_description Describe(Options& options, Texts& texts) {
  po::options_description description(
      "grus-manager runs the controllers of grus against a Kubernetes API server.\n\n"
      "Usage: grus-manager [options]\n\nOptions",
      100);
  auto add = description.add_options();
  const auto text = [](std::string& value, const char* name) { return po::value(&value)->value_name(name); };
  const auto preset = [&](std::string& value, const char* name) { return text(value, name)->default_value(value); };
  add("kubeconfig", text(options.kubeconfig, "FILE"),
      "Kubeconfig file. If not set: the pod's service account when running in a cluster, else $KUBECONFIG, else "
      "~/.kube/config.");
  add("context", text(options.context, "NAME"), "Context of the kubeconfig (its current one).");
  add("controllers", preset(texts.controllers, "LIST"),
      "Controllers to run, separated by commas: elastic (ElasticHorovodJob), gang (PodGroup), trial (TrialJob, whose "
      "trials need elastic).");
  add("namespaces", text(texts.namespaces, "LIST"),
      "Namespaces to look after, separated by commas (all). With this set, pods elsewhere are not counted when free "
      "GPUs are.");
  add("leader-elect", po::value(&options.leader_elect)->value_name("BOOL")->implicit_value(true, "true"),
      "Work only while holding a lease, so that several replicas may run (false).");
  add("leader-elect-namespace", text(options.leader_elect_namespace, "NAMESPACE"),
      "Namespace of the lease (the one of the pod or of the kubeconfig's context).");
  add("leader-elect-name", preset(options.leader_elect_name, "NAME"), "Name of the lease.");
  add("metrics-address", preset(options.metrics_address, "HOST:PORT"), "Where /metrics is served; 0: nowhere.");
  add("health-address", preset(options.health_address, "HOST:PORT"),
      "Where /healthz and /readyz are served; 0: nowhere.");
  add("reconcile-threads",
      po::value(&options.reconcile_threads)->value_name("N")->default_value(options.reconcile_threads),
      "Threads of each controller, 1 to 256.");
  add("nominations", preset(texts.nominations, "WHEN"),
      "When the members of a gang are nominated for their nodes, so that no other pod takes them: auto (while pods "
      "that "
      "ask for GPUs outside any gang are about), always, never, or pin: in place of it, members may run on the planned "
      "node alone.");
  add("log-level", preset(texts.level, "LEVEL"), "debug, info, warn or error.");
  add("log-format", preset(texts.format, "FORMAT"), "text or json.");
  add("version", "Print the version and the commit, and exit.");
  add("help,h", "Print this help and exit.");
  return description;
}

kube::Status Check(const Texts& texts, Options& options) {
  options.controllers = SplitList(texts.controllers);
  options.namespaces = SplitList(texts.namespaces);
  if (options.controllers.empty())
    return Bad("controllers", texts.controllers, "at least one of: elastic, gang, trial");
  for (const std::string& name : options.controllers) {
    if (std::find(std::begin(kControllers), std::end(kControllers), name) == std::end(kControllers)) {
      return Bad("controllers", name, "a list of: elastic, gang, trial");
    }
  }
  if (options.reconcile_threads < 1 || options.reconcile_threads > 256) {
    return Bad("reconcile-threads", std::to_string(options.reconcile_threads), "1 to 256");
  }
  const auto when = std::find(std::begin(kNominations), std::end(kNominations), texts.nominations);
  if (when == std::end(kNominations)) return Bad("nominations", texts.nominations, "auto, always, never or pin");
  options.nominations = static_cast<Nominations>(when - std::begin(kNominations));
  const kube::Result<kube::LogLevel> log_level = LevelOf(texts.level);
  if (!log_level) return log_level.error();
  options.log_level = *log_level;
  if (texts.format != "text" && texts.format != "json") return Bad("log-format", texts.format, "text or json");
  options.log_format = texts.format == "json" ? kube::LogFormat::kJson : kube::LogFormat::kText;
  return {};
}

}  // namespace

kube::Result<Options> ParseOptions(int argc, const char* const* argv) {
  Options options;
  Texts texts;
  const po::options_description description = Describe(options, texts);
  po::variables_map values;
  try {
    po::store(po::command_line_parser(argc, argv).options(description).positional({}).run(), values);
    po::notify(values);
  } catch (const po::error& e) {
    return Error(ErrorCode::kInvalidArgument, std::string(e.what()) + "; see grus-manager --help");
  }
  if (values.count("help")) {
    std::ostringstream text;
    text << description;
    options.text_to_print = text.str();
    return options;
  }
  if (values.count("version")) {
    options.text_to_print = std::string("grus-manager ") + kVersion + " (" + kCommit + ")\n";
    return options;
  }
  if (kube::Status checked = Check(texts, options); !checked) return std::move(checked).error();
  return options;
}

}  // namespace grus

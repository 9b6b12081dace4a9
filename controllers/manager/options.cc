// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <optional>
#include <span>
#include <sstream>

#include "clientlib/auth/files.h"
#include "clientlib/http/url.h"
#include "controllers/interference/model_file.h"
#include "controllers/version/version.h"

namespace grus {
namespace {

namespace po = boost::program_options;
using kube::Error;
using kube::ErrorCode;

constexpr std::string_view kControllers[] = {"elastic", "gang", "trial", "queues", "profiler", "extender"};
// In the order of the enumerators.
constexpr std::string_view kNominations[] = {"auto", "always", "never", "pin"};
constexpr std::string_view kTrusts[] = {"namespace", "cluster"};
constexpr std::string_view kLevels[] = {"debug", "info", "warn", "error"};
constexpr std::string_view kFormats[] = {"text", "json"};

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

// "rayclusters.ray.io"; of the core group, "replicationcontrollers".
std::optional<OwnerKind> ParseOwnerKind(const std::string& text) {
  const auto is_fine = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  if (text.front() == '.' || text.back() == '.' || !std::all_of(text.begin(), text.end(), is_fine)) return std::nullopt;
  const std::size_t dot = std::min(text.find('.'), text.size());
  return OwnerKind{text.substr(std::min(dot + 1, text.size())), text.substr(0, dot)};
}

// The manager may patch what is listed: that must not be what decides who may do what.
bool MayControlPods(const OwnerKind& kind) {
  constexpr std::string_view kNever[] = {"admissionregistration.k8s.io", "apiextensions.k8s.io",
                                         "apiregistration.k8s.io", "certificates.k8s.io", "rbac.authorization.k8s.io"};
  if (kind.group.empty()) return kind.resource == "replicationcontrollers";
  return std::ranges::find(kNever, kind.group) == std::end(kNever);
}

Error Bad(const std::string& option, const std::string& value, const std::string& allowed) {
  return Error(ErrorCode::kInvalidArgument, "--" + option + " \"" + value + "\": expected " + allowed);
}

// The index of `name`; nullopt: it is none of them.
std::optional<std::size_t> IndexIn(std::span<const std::string_view> names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - names.begin()));
}

// Of a model file; none if there is no file.
kube::Result<std::vector<CoRunSample>> CoRunsIn(const std::string& path) {
  if (path.empty()) return std::vector<CoRunSample>();
  const kube::Result<std::string> text = kube::ReadSmallFile(path);
  const kube::Result<InterferenceModel> model =
      text ? ReadModelFile(*text, path) : kube::Result<InterferenceModel>(text.error());
  if (!model) return model.error();
  return model->samples();
}

// A certificate and its key, by the options --NAME-cert-file and --NAME-key-file.
kube::Status CheckPair(const std::string& name, const std::string& cert_file, const std::string& key_file) {
  if (cert_file.empty() == key_file.empty()) return {};
  return Bad(name + "-key-file", key_file, "a file exactly if --" + name + "-cert-file has one");
}

// Values that are checked before they become options.
struct Texts {
  std::string controllers = "elastic,gang,trial,queues,profiler", namespaces, level = "info", format = "text",
              nominations = "auto", profiles = "namespace", prometheus, scheduler_leases = "kube-system", owner_kinds,
              extender_clients, gpu_weights, interference_model;
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
  add("context", text(options.context, "NAME"), "Context of the kubeconfig (default: its current one).");
  add("controllers", preset(texts.controllers, "LIST"),
      "Controllers to run, separated by commas: elastic (ElasticHorovodJob), gang (PodGroup), trial (TrialJob, whose "
      "trials need elastic), queues (GpuQueue and NodePool), profiler (the progress of trainings, with elastic; what "
      "jobs use, with --usage-prometheus), extender (what a kube-scheduler asks about pods with GPUs; not on by "
      "itself).");
  add("namespaces", text(texts.namespaces, "LIST"),
      "Namespaces to manage, separated by commas (default: all). With this set, GPUs held by pods in other namespaces "
      "count as free, unless --count-all-pods is.");
  add("count-all-pods", po::value(&options.count_all_pods)->value_name("BOOL")->implicit_value(true, "true"),
      "With --namespaces: watch the pods of all other namespaces too, to count the GPUs that they hold (default: "
      "false).");
  add("leader-elect", po::value(&options.leader_elect)->value_name("BOOL")->implicit_value(true, "true"),
      "Reconcile only while holding a lease, so that several replicas can run (default: false).");
  add("leader-elect-namespace", text(options.leader_elect_namespace, "NAMESPACE"),
      "Namespace of the lease (default: that of the pod or of the kubeconfig's context).");
  add("leader-elect-name", preset(options.leader_elect_name, "NAME"), "Name of the lease.");
  add("scheduler-lease-namespaces", preset(texts.scheduler_leases, "LIST"),
      "Namespaces, separated by commas, in which the leases of the scheduler (kube-scheduler) and of the controllers "
      "of "
      "scheduler-plugins (sched-plugins-controllers) count: name only those in which no tenant can create leases.");
  add("ssh-network-policies",
      po::value(&options.ssh_network_policies)->value_name("BOOL")->implicit_value(true, "true"),
      "Make a NetworkPolicy for each ElasticHorovodJob that starts: only its own pods reach its workers, and only its "
      "launcher their ssh servers (default: false).");
  add("metrics-address", preset(options.metrics_address, "HOST:PORT"), "Address of /metrics; 0: not served.");
  add("metrics-secure", po::value(&options.metrics_secure)->value_name("BOOL")->implicit_value(true, "true"),
      "Serve /metrics with TLS, and only to whom the API server lets get /metrics (default: false).");
  add("metrics-cert-file", text(options.metrics_cert_file, "FILE"),
      "Certificate for --metrics-secure, in PEM; read again when it changes (default: one of its own that nobody can "
      "check).");
  add("metrics-key-file", text(options.metrics_key_file, "FILE"), "Its key, in PEM.");
  add("extender-address", preset(options.extender_address, "HOST:PORT"),
      "Address of the extender, for urlPrefix https://.../scheduler of the kube-scheduler's configuration.");
  add("extender-cert-file", text(options.extender_cert_file, "FILE"),
      "Its certificate, in PEM; read again when it changes (default: plain HTTP).");
  add("extender-key-file", text(options.extender_key_file, "FILE"), "Its key, in PEM.");
  add("extender-client-ca-file", text(options.extender_client_ca_file, "FILE"),
      "Certificates in PEM, one of which must have signed that of a scheduler. Without it anybody may ask, and nothing "
      "is bound.");
  add("extender-clients", text(texts.extender_clients, "LIST"),
      "Names, separated by commas, one of which the certificate of a scheduler has (default: any).");
  add("extender-service", text(options.extender_service, "NAME"),
      "A Service without a selector in the namespace of the lease: while this process leads, it is where this leads "
      "to.");
  add("extender-pod-address", text(options.extender_pod_address, "IP"), "The address for that.");
  add("gpu-weights", text(texts.gpu_weights, "LIST"),
      "What a GPU counts in pools whose placement is UtilSched, by a part of its model's name, as A100=14,H100=20 "
      "(beside K80=6, TITAN X=7 and V100=10). What is in use there says --usage-prometheus.");
  add("interference-model", text(texts.interference_model, "FILE"),
      "What is known of how fast jobs are that share a GPU, as `kubectl grus interference fit --save` writes it, "
      "beside "
      "the coRuns of WorkloadProfiles: for pools whose placement is Interference (default: nothing).");
  add("health-address", preset(options.health_address, "HOST:PORT"), "Address of /healthz and /readyz; 0: not served.");
  add("reconcile-threads",
      po::value(&options.reconcile_threads)->value_name("N")->default_value(options.reconcile_threads),
      "Threads of each controller, 1 to 256.");
  add("nominations", preset(texts.nominations, "WHEN"),
      "When to nominate the members of a gang for their nodes, so that no other pod takes them: auto (while another "
      "pod could), always, never, or pin (instead of nominating, restrict each member to its node).");
  add("resize-seconds",
      po::value(&options.resize_seconds)->value_name("SECONDS")->default_value(options.resize_seconds),
      "How long a training stands still when its number of workers changes, 0 to 3600: jobs of known speed change "
      "their size only where that pays.");
  add("profiles", preset(texts.profiles, "WHOSE"),
      "Whose measurements a workload uses: those of its namespace, or of the cluster (only where all namespaces trust "
      "each other: anyone can make a job that looks like another's, as fast as they like).");
  add("profile-days", po::value(&options.profile_days)->value_name("DAYS")->default_value(options.profile_days),
      "WorkloadProfiles that grus made are deleted when nothing was measured for so long; 0: never.");
  add("prometheus-servers", text(texts.prometheus, "LIST"),
      "Servers that TrialJobs may name as their source of measurements, separated by commas, as "
      "http://prometheus.monitoring:9090 (default: none).");
  add("usage-prometheus", text(options.usage_prometheus, "URL"),
      "The Prometheus that says what jobs use of their GPUs and nodes, for the profiler to record (default: none, and "
      "nothing is recorded).");
  add("usage-selector", text(options.usage_selector, "MATCHERS"),
      "Which of its series to believe, as job=~\"dcgm-exporter|kubelet\" (default: all). Set it where that Prometheus "
      "also "
      "scrapes pods of users, who may state any numbers.");
  add("owner-kinds", text(texts.owner_kinds, "LIST"),
      "Kinds of others whose own controllers are the jobs that use GPUs, separated by commas, as "
      "rayclusters.ray.io,jobsets.jobset.x-k8s.io: RESOURCE.GROUP (default: none but ReplicaSets, Jobs and PodGroups). "
      "With --alnair-annotations these are annotated, too.");
  add("alnair-annotations", po::value(&options.alnair_annotations)->value_name("BOOL")->implicit_value(true, "true"),
      "Write what pods with GPUs used at most into the annotations of the original Alnair, on the pods, and on the "
      "ElasticHorovodJobs, Jobs and --owner-kinds that control them; it needs --usage-prometheus and profiler in "
      "--controllers (default: false).");
  add("log-level", preset(texts.level, "LEVEL"), "debug, info, warn or error.");
  add("log-format", preset(texts.format, "FORMAT"), "text or json.");
  add("check", po::bool_switch(&options.check),
      "Check that the API server answers, that the kinds are installed, and that the account may do what these options "
      "need; say what is missing, and exit: 0 if nothing.");
  add("version", "Print the version and the commit, and exit.");
  add("help,h", "Print this help and exit.");
  return description;
}

kube::Status CheckExtender(const Texts& texts, Options& options) {
  options.extender_clients = SplitList(texts.extender_clients);
  if (options.Runs("extender") && !options.namespaces.empty()) {
    return Bad("namespaces", texts.namespaces,
               "none with extender in --controllers: a scheduler asks about pods of all");
  }
  kube::Status pair = CheckPair("extender", options.extender_cert_file, options.extender_key_file);
  if (!pair) return pair;
  if (!options.extender_client_ca_file.empty() && options.extender_cert_file.empty()) {
    return Bad("extender-client-ca-file", options.extender_client_ca_file, "--extender-cert-file beside it");
  }
  if (options.extender_service.empty() != options.extender_pod_address.empty()) {
    return Bad("extender-pod-address", options.extender_pod_address, "an address exactly if --extender-service is set");
  }
  if (!options.extender_clients.empty() && options.extender_client_ca_file.empty()) {
    return Bad("extender-clients", texts.extender_clients, "--extender-client-ca-file beside it");
  }
  return {};
}

kube::Status Check(const Texts& texts, Options& options) {
  options.controllers = SplitList(texts.controllers);
  options.namespaces = SplitList(texts.namespaces);
  if (options.controllers.empty()) {
    return Bad("controllers", texts.controllers, "at least one of: elastic, gang, trial, queues, profiler, extender");
  }
  for (const std::string& name : options.controllers) {
    if (!IndexIn(kControllers, name))
      return Bad("controllers", name, "a list of: elastic, gang, trial, queues, profiler, extender");
  }
  if (kube::Status checked = CheckExtender(texts, options); !checked) return checked;
  options.scheduler_lease_namespaces = SplitList(texts.scheduler_leases);
  if (options.scheduler_lease_namespaces.empty()) {
    return Bad("scheduler-lease-namespaces", texts.scheduler_leases, "at least one namespace");
  }
  kube::Status pair = CheckPair("metrics", options.metrics_cert_file, options.metrics_key_file);
  if (!pair) return pair;
  if (!options.metrics_cert_file.empty() && !options.metrics_secure) {
    return Bad("metrics-cert-file", options.metrics_cert_file, "--metrics-secure beside it");
  }
  if (options.reconcile_threads < 1 || options.reconcile_threads > 256) {
    return Bad("reconcile-threads", std::to_string(options.reconcile_threads), "1 to 256");
  }
  if (!(options.resize_seconds >= 0 && options.resize_seconds <= 3600)) {
    return Bad("resize-seconds", std::to_string(options.resize_seconds), "0 to 3600");
  }
  const auto when = IndexIn(kNominations, texts.nominations);
  if (!when) return Bad("nominations", texts.nominations, "auto, always, never or pin");
  options.nominations = static_cast<Nominations>(*when);
  const auto trust = IndexIn(kTrusts, texts.profiles);
  if (!trust) return Bad("profiles", texts.profiles, "namespace or cluster");
  options.profile_trust = static_cast<ProfileTrust>(*trust);
  if (options.profile_days < 0 || options.profile_days > 36500) {
    return Bad("profile-days", std::to_string(options.profile_days), "0 to 36500");
  }
  options.prometheus_servers = SplitList(texts.prometheus);
  for (const std::string& server : options.prometheus_servers) {
    if (!kube::ParseServerUrl(server)) return Bad("prometheus-servers", server, "URLs such as http://prometheus:9090");
  }
  if (!options.usage_prometheus.empty() && !kube::ParseServerUrl(options.usage_prometheus)) {
    return Bad("usage-prometheus", options.usage_prometheus, "a URL such as http://prometheus:9090");
  }
  if (options.usage_selector.find_first_of("{}[]()") != std::string::npos) {
    return Bad("usage-selector", options.usage_selector, "matchers without braces, such as job=\"dcgm-exporter\"");
  }
  const kube::Result<ModelWeights> weights = ModelWeights::Parse(texts.gpu_weights);
  if (!weights) return kube::Error(weights.error()).with("--gpu-weights");
  options.gpu_weights = *weights;
  kube::Result<std::vector<CoRunSample>> co_runs = CoRunsIn(texts.interference_model);
  if (!co_runs) return std::move(co_runs).error().with("--interference-model");
  options.told_co_runs = *std::move(co_runs);
  for (const std::string& text : SplitList(texts.owner_kinds)) {
    const auto kind = ParseOwnerKind(text);
    if (!kind) return Bad("owner-kinds", text, "RESOURCE.GROUP such as rayclusters.ray.io");
    if (!MayControlPods(*kind)) return Bad("owner-kinds", text, "kinds that control pods, which these do not");
    options.owner_kinds.push_back(*kind);
  }
  if (options.alnair_annotations && !options.RecordsUsage()) {
    return Bad("alnair-annotations", "true",
               options.usage_prometheus.empty() ? "--usage-prometheus beside it" : "profiler in --controllers");
  }
  const auto level = IndexIn(kLevels, texts.level);
  if (!level) return Bad("log-level", texts.level, "debug, info, warn or error");
  options.log_level = static_cast<kube::LogLevel>(*level);
  const auto format = IndexIn(kFormats, texts.format);
  if (!format) return Bad("log-format", texts.format, "text or json");
  options.log_format = static_cast<kube::LogFormat>(*format);
  return {};
}

}  // namespace

bool Options::Runs(std::string_view controller) const {
  return std::find(controllers.begin(), controllers.end(), controller) != controllers.end();
}

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

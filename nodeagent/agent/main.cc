// SPDX-License-Identifier: Apache-2.0
// grus-node-agent: looks at the GPUs of its node, names the pods of their processes, serves both to Prometheus, and
// tells on the node which GPUs it has and what is wrong with them; and gives parts of them to pods, where it is told
// to.
#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "clientlib/client/connection.h"
#include "clientlib/runtime/event_recorder.h"
#include "clientlib/runtime/http_server.h"
#include "clientlib/runtime/metrics.h"
#include "clientlib/runtime/shutdown.h"
#include "nodeagent/agent/node_sharing.h"
#include "nodeagent/agent/options.h"
#include "nodeagent/cgroup_path.h"
#include "nodeagent/gpu_faults.h"
#include "nodeagent/gpu_metrics.h"
#include "nodeagent/gpu_probe.h"
#include "nodeagent/node_pods.h"
#include "nodeagent/node_writer.h"
#include "nodeagent/nvml.h"
#include "nodeagent/process_owner.h"
#include "nodeagent/sharing/part_metrics.h"

namespace grus {
namespace {

using kube::HttpServer;
using kube::Result;
using kube::Status;

constexpr char kEventSource[] = "ai.centauruscloud.io/grus-node-agent";
constexpr kube::Duration kLongestLook = std::chrono::minutes(1);  // A driver may hang; a restart may cure that.

kube::HttpReply Health(const GpuProbe& probe, const kube::Clock& clock, kube::TimePoint started) {
  const std::shared_ptr<const NodeSample> look = probe.newest();
  if (clock.Now() - (look ? look->at : started) <= kLongestLook) return {.body = "ok\n"};
  return {.status = 500, .body = "the GPU driver has not answered for a minute\n"};
}

// Empty: it runs in none, or in a cgroup namespace of its own, in which its children are in none either.
std::string OwnPod() {
  std::ifstream file("/proc/self/cgroup");
  const std::string cgroups{std::istreambuf_iterator<char>(file), {}};
  return PodOfCgroups(cgroups).value_or(PodOfProcess{}).pod_uid;
}

// They are remembered where GPUs are withdrawn for them, in a folder of the node that the agent can write to then;
// container runtimes read only .json and .yaml there.
GpuFaultsOptions FaultsOf(const AgentOptions& options) {
  return {.path = options.shares_gpus ? std::string(kCdiFolder) + "/grus-gpu-faults" : std::string(),
          .proc = options.proc};
}

// Blocks until `stop`.
Status Run(const AgentOptions& options, const kube::Log& log, const std::stop_token& stop) {
  const kube::SystemClock clock;
  Result<std::unique_ptr<kube::Connection>> connection =
      kube::Connect({.kubeconfig = options.kubeconfig, .user_agent = "grus-node-agent", .log = &log}, clock);
  if (!connection) return std::move(connection).error();
  kube::Client& client = *(*connection)->client;
  NodePods pods(client, options.node_name, clock, log);
  pods.Start();

  NvmlLibrary library;
  ProcessOwners owners(options.proc, pods);
  GpuFaults faults(FaultsOf(options), log);
  GpuProbe probe(library, owners, faults, clock, log);
  kube::EventRecorder events(client, clock, log, {kEventSource, options.node_name});
  std::optional<NodeSharing> sharing;
  if (options.shares_gpus) {
    NodeSharingOptions shared{options.node_name, options.share_reserve_mib};
    shared.cuda = {.library = options.cuda_library,
                   .folder = options.cuda_folder,
                   .shares = options.cuda_shares,
                   .context_mib = options.cuda_context_mib,
                   .proc = options.proc};
    shared.mps = {.program = options.mps_control, .folder = options.mps_folder, .shm_folder = options.mps_shm};
    shared.on_mps_fault = [&](const NodePod& pod, const std::string& note) {
      events.Record(kube::EventType::kWarning, kube::KindOf<NodePod>(), pod.metadata, "MpsClientFault", "WatchMps",
                    note);
    };
    shared.own_pod = OwnPod();
    sharing.emplace(
        client, [&] { return probe.newest(); }, pods, std::move(shared), clock, log);
  }
  NodeWriterOptions written{options.node_name, options.alnair_annotations};
  if (sharing) written.more_annotations = [&] { return sharing->NodeAnnotations(); };
  NodeWriter writer(client, probe, events, std::move(written), clock, log);
  kube::Registry metrics;
  kube::AddProcessMetrics(metrics);
  writer.AddMetrics(metrics);
  AddGpuMetrics(metrics, probe, clock);
  if (sharing) {
    sharing->AddMetrics(metrics);
    AddPartMetrics(
        metrics, [&] { return sharing->newest_parts(); }, [&] { return probe.newest(); }, clock);
  }
  if (options.alnair_names) AddAlnairMetrics(metrics, probe, clock, options.node_name);

  const kube::TimePoint started = clock.Now();
  const auto scrape = [&](const kube::ServedRequest&) {
    return kube::HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", metrics.Text()};
  };
  const auto health = [&](const kube::ServedRequest&) { return Health(probe, clock, started); };
  const Result<std::unique_ptr<HttpServer>> server =
      HttpServer::Start(options.metrics_address, {{"/metrics", scrape}, {"/healthz", health}});
  if (!server) return server.error();
  log.Info("starting", {{"node", options.node_name},
                        {"server", kube::Describe((*connection)->config)},
                        {"metrics_port", (*server)->port()}});
  kube::Thread giving;
  if (sharing) giving = clock.Spawn([&](const std::stop_token& end) { sharing->Run(end); });
  const kube::Thread writing = clock.Spawn([&](const std::stop_token& end) { writer.Run(end); });
  probe.Run(stop);
  return {};
}

}  // namespace
}  // namespace grus

int main(int argc, char** argv) {
  // An arena for each thread would multiply the memory of a process whose threads mostly wait.
  mallopt(M_ARENA_MAX, 1);
  kube::SignalStop signals;  // First: every thread must inherit the blocked signals.
  const kube::Result<grus::AgentOptions> options = grus::ParseAgentOptions(argc, argv);
  if (!options) {
    std::fprintf(stderr, "grus-node-agent: %s\n", options.error().message().c_str());
    return 2;
  }
  if (!options->text_to_print.empty()) {
    std::fputs(options->text_to_print.c_str(), stdout);
    return 0;
  }
  const kube::Log log;
  const kube::Status ran = grus::Run(*options, log, signals.token());
  if (!ran) {
    log.Error("grus-node-agent stops", {{"error", ran.error().message()}});
    return 1;
  }
  log.Info("stopped");
  return 0;
}

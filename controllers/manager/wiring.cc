// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/wiring.h"

#include <unistd.h>

#include <random>

#include "clientlib/runtime/client_metrics.h"
#include "clientlib/runtime/http_server.h"
#include "controllers/manager/app.h"
#include "controllers/manager/server_wait.h"
#include "controllers/manager/version.h"

namespace grus {
namespace {

using kube::Result;
using kube::Status;

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "grus-manager";
}

// A new one each start, so that a restarted process never takes the lease for its own.
std::string Identity() {
  std::random_device random;
  char suffix[40];
  std::snprintf(suffix, sizeof suffix, "_%08x%08x", random(), random());
  return HostName() + suffix;
}

Result<std::unique_ptr<kube::LeaderElector>> MakeElector(const Options& options, kube::Connection& connection,
                                                         const kube::Clock& clock, const kube::Log& log) {
  if (!options.leader_elect) return std::unique_ptr<kube::LeaderElector>();
  kube::LeaderElectionOptions election;
  election.lease.ns =
      options.leader_elect_namespace.empty() ? connection.config.default_namespace : options.leader_elect_namespace;
  election.lease.name = options.leader_elect_name;
  election.identity = Identity();
  return kube::LeaderElector::Create(*connection.lease_client, clock, log, std::move(election));
}

kube::HttpReply Check(const Status& status) {
  if (status) return {200, "text/plain; charset=utf-8", "ok\n"};
  return {500, "text/plain; charset=utf-8", status.error().message() + "\n"};
}

Result<std::unique_ptr<kube::HttpServer>> Serve(const std::string& address,
                                                std::map<std::string, kube::HttpServer::Handler> handlers) {
  if (address == "0" || address.empty()) return std::unique_ptr<kube::HttpServer>();
  return kube::HttpServer::Start(address, std::move(handlers));
}

}  // namespace

int RunManager(const Options& options, std::stop_token stop) {
  const kube::Log log(options.log_level, options.log_format);
  const auto fail = [&log](const kube::Error& error) {
    log.Error("grus-manager stops", {{"error", error.message()}});
    return 1;
  };
  const kube::SystemClock clock;
  kube::Registry metrics;
  kube::AddProcessMetrics(metrics);
  kube::ClientMetrics client_metrics(metrics, "kube-apiserver");

  Result<std::unique_ptr<kube::Connection>> made = kube::Connect(
      {options.kubeconfig, options.context, std::string("grus-manager/") + kVersion, &client_metrics, &log}, clock);
  if (!made) return fail(made.error());
  kube::Connection& connection = **made;
  Result<std::unique_ptr<kube::LeaderElector>> elector = MakeElector(options, connection, clock, log);
  if (!elector) return fail(elector.error());
  if (*elector) {
    metrics.AddGaugeFunction("leader_election_master_status", "1 if this process leads, else 0.", {"name"},
                             {options.leader_elect_name}, [&] { return (*elector)->IsLeader() ? 1.0 : 0.0; });
  }

  Options known = options;
  known.own_namespace =
      options.leader_elect_namespace.empty() ? connection.config.default_namespace : options.leader_elect_namespace;
  App app(known, *connection.client, elector->get(), clock, log, metrics, HostName());
  Result<std::unique_ptr<kube::HttpServer>> health = Serve(
      options.health_address, {{"/healthz",
                                [&](const std::string&) {
                                  return Check(*elector ? (*elector)->CheckHealth(std::chrono::seconds(20)) : Status());
                                }},
                               {"/readyz", [&](const std::string&) {
                                  if (app.IsReady()) return Check(Status());
                                  return Check(kube::Error(kube::ErrorCode::kUnavailable, "caches are not synced"));
                                }}});
  if (!health) return fail(health.error());
  Result<std::unique_ptr<kube::HttpServer>> scrape =
      Serve(options.metrics_address,
            {{"/metrics", [&](const std::string&) {
                return kube::HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", metrics.Text()};
              }}});
  if (!scrape) return fail(scrape.error());

  log.Info("starting", {{"version", kVersion},
                        {"commit", kCommit},
                        {"server", kube::Describe(connection.config)},
                        {"metrics_port", *scrape ? (*scrape)->port() : 0},
                        {"health_port", *health ? (*health)->port() : 0}});
  const std::string ns = options.namespaces.empty() ? std::string() : options.namespaces.front();
  const Status ready = WaitForServer(connection, App::Kinds(options), ns, clock, log, stop);
  if (!ready) return fail(ready.error());

  if (Status ran = app.Run(stop); !ran) return fail(ran.error());
  log.Info("stopped");
  return 0;
}

}  // namespace grus

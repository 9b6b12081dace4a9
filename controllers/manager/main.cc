// SPDX-License-Identifier: Apache-2.0
// grus-manager: connects, waits for an API server that serves our kinds, runs the App, and serves metrics and health.
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <random>
#include <thread>

#include "clientlib/auth/tls_material.h"
#include "clientlib/base/backoff.h"
#include "clientlib/base/wait.h"
#include "clientlib/client/connection.h"
#include "clientlib/client/resource_path.h"
#include "clientlib/runtime/client_metrics.h"
#include "clientlib/runtime/http_server.h"
#include "clientlib/runtime/shutdown.h"
#include "controllers/manager/app.h"
#include "controllers/manager/extender_server.h"
#include "controllers/manager/leader_endpoint.h"
#include "controllers/manager/metrics_access.h"
#include "controllers/manager/needed_rights.h"
#include "controllers/version/version.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::HttpServer;
using kube::Result;
using kube::Status;

constexpr kube::Duration kLongestWithoutAnswer = std::chrono::seconds(3);  // To ask nobody burdens nobody.
constexpr kube::BackoffPolicy kServerRetry{std::chrono::seconds(1), std::chrono::seconds(30), 2.0, 0.2};

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
  election.lease = {options.own_namespace, options.leader_elect_name};
  election.identity = Identity();
  return kube::LeaderElector::Create(*connection.lease_client, clock, log, std::move(election));
}

kube::HttpReply Check(const Status& status) {
  return status ? kube::HttpReply{.body = "ok\n"}
                : kube::HttpReply{.status = 500, .body = status.error().message() + "\n"};
}

Result<std::unique_ptr<HttpServer>> Serve(const std::string& address,
                                          std::map<std::string, HttpServer::Handler> handlers,
                                          HttpServer::CertificateSource certificates = {}) {
  if (address == "0" || address.empty()) return std::unique_ptr<HttpServer>();
  return HttpServer::Start(address, std::move(handlers), {}, std::move(certificates));
}

// Lists one object of the kind, in a namespace that we may read, or in all.
Status CheckKind(kube::Client& client, const kube::Kind& kind, const Options& options, std::stop_token stop) {
  const std::string ns = options.namespaces.empty() ? std::string() : options.namespaces.front();
  Result<std::string> answer = client.GetRaw(kube::CollectionPath(kind, ns) + "?limit=1", std::move(stop));
  if (answer) return {};
  const std::string name = std::string(kind.plural) + "." + std::string(kind.group);
  if (answer.error().code() == ErrorCode::kNotFound) {
    return Error(ErrorCode::kNotFound,
                 "the CustomResourceDefinition " + name + " is not installed: kubectl apply -f crds/generated");
  }
  return std::move(answer).error().with("list " + name);
}

Status CheckKinds(kube::Client& client, const Options& options, std::stop_token stop) {
  for (const kube::Kind* kind : App::Kinds(options)) {
    if (Status there = CheckKind(client, *kind, options, stop); !there) return there;
  }
  return {};
}

// What to do about credentials that the API server refuses: it does not say what is wrong with them.
Error Refused(const kube::ClientConfig& config, const kube::Clock& clock) {
  std::string what = config.source + ": the API server does not accept these credentials: are they expired, ";
  const Result<kube::WallTime> expiry = kube::CertificateExpiry(config.cert_pem);
  if (!config.cert_pem.empty() && expiry && *expiry < clock.WallNow()) {
    what = config.source + ": the client certificate expired at " + kube::ToText(kube::Time{*expiry}) + ": renew it";
    return Error(ErrorCode::kUnauthorized, std::move(what));
  }
  return Error(ErrorCode::kUnauthorized, what + "or of another cluster?");
}

// Waits until the API server serves our kinds, with one log line for each try. Returns the errors that waiting cannot
// cure: an untrusted certificate, refused credentials.
Status WaitForServer(kube::Connection& connection, const Options& options, const kube::Clock& clock,
                     const kube::Log& log, std::stop_token stop) {
  kube::Backoff backoff(kServerRetry);
  for (;;) {
    Status ready = CheckKinds(*connection.client, options, stop);
    if (ready || stop.stop_requested()) return {};
    const Error& error = ready.error();
    if (error.code() == ErrorCode::kUnauthorized) return Refused(connection.config, clock);
    if (error.is_terminal()) return std::move(ready).error().with(connection.config.source);
    kube::Duration wait = std::max(backoff.Next(), error.retry_after().value_or(kube::Duration::zero()));
    if (error.http_status() == 0) wait = std::min(wait, kLongestWithoutAnswer);
    log.Warn("waiting for the API server",
             {{"error", error.message()},
              {"retry_in_seconds", std::chrono::duration_cast<std::chrono::seconds>(wait).count()}});
    if (!kube::WaitFor(clock, wait, stop)) return {};
  }
}

// Logs what the account lacks; only a log can tell, since what needs it may be far off or rare.
void LogMissingRights(kube::Connection& connection, Options options, const kube::Clock& clock, const kube::Log& log,
                      const std::stop_token& stop) {
  constexpr std::size_t kEnough = 5;  // Of many namespaces, that tell what a role lacks: each has some 60 rights.
  if (options.namespaces.size() > kEnough) options.namespaces.resize(kEnough);
  const auto missing = MissingRights(*connection.review_client, NeededRights(options), clock, stop);
  if (stop.stop_requested()) return;
  if (!missing) return log.Info("cannot find out what this account may do", {{"reason", missing.error().message()}});
  for (const Right& right : *missing) {
    log.Warn("this account lacks a right: upgrade the chart, or add the right to its role",
             {{"right", right.Text()}, {"needed_for", right.purpose}});
  }
}

// --check: prints what is missing, a line each.
Status PrintCheck(kube::Connection& connection, const Options& options, const kube::Clock& clock,
                  std::stop_token stop) {
  bool is_whole = true;
  for (const kube::Kind* kind : App::Kinds(options)) {
    Status there = CheckKind(*connection.client, *kind, options, stop);
    if (there || there.error().code() == ErrorCode::kForbidden) continue;  // The right is named below.
    if (there.error().code() == ErrorCode::kUnauthorized) return Refused(connection.config, clock);
    if (there.error().code() != ErrorCode::kNotFound) return there;
    std::printf("missing: %s\n", there.error().message().c_str());
    is_whole = false;
  }
  const std::vector<Right> needed = NeededRights(options);
  const auto missing = MissingRights(*connection.review_client, needed, clock, std::move(stop));
  if (!missing) return missing.error();
  for (const Right& right : *missing) {
    std::printf("missing: the right to %s (%s)\n", right.Text().c_str(), std::string(right.purpose).c_str());
    is_whole = false;
  }
  if (options.log_level == kube::LogLevel::kDebug) {
    for (const Right& right : needed) std::printf("needed: %s\n", right.Text().c_str());
  }
  if (!is_whole) {
    return Error(ErrorCode::kForbidden,
                 "something is missing: upgrade the chart, or add the rights to the account's role");
  }
  std::printf("nothing is missing: the kinds are installed, and the account has the %zu rights that it needs\n",
              needed.size());
  return {};
}

// Blocks until `stop`, or until an error that it cannot recover from.
Status Run(Options options, const kube::Log& log, std::stop_token stop) {
  const kube::SystemClock clock;
  kube::Registry metrics;
  kube::AddProcessMetrics(metrics);
  kube::ClientMetrics client_metrics(metrics, "kube-apiserver");

  Result<std::unique_ptr<kube::Connection>> made = kube::Connect(
      {options.kubeconfig, options.context, std::string("grus-manager/") + kVersion, &client_metrics, &log}, clock);
  if (!made) return std::move(made).error();
  kube::Connection& connection = **made;
  options.own_namespace =
      options.leader_elect_namespace.empty() ? connection.config.default_namespace : options.leader_elect_namespace;
  if (options.check) return PrintCheck(connection, options, clock, stop);
  Result<std::unique_ptr<kube::LeaderElector>> elector = MakeElector(options, connection, clock, log);
  if (!elector) return std::move(elector).error();
  if (*elector) {
    metrics.AddGaugeFunction("leader_election_master_status", "1 if this process leads, else 0.", {"name"},
                             {options.leader_elect_name}, [&] { return (*elector)->IsLeader() ? 1.0 : 0.0; });
  }

  App app(options, *connection.client, elector->get(), clock, log, metrics, HostName());
  const auto is_alive = [&](const kube::ServedRequest&) {
    return Check(*elector ? (*elector)->CheckHealth(std::chrono::seconds(20)) : Status());
  };
  const auto is_ready = [&](const kube::ServedRequest&) {
    return Check(app.IsReady() ? Status() : Error(ErrorCode::kUnavailable, "caches are not synced"));
  };
  Result<std::unique_ptr<HttpServer>> health =
      Serve(options.health_address, {{"/healthz", is_alive}, {"/readyz", is_ready}});
  if (!health) return std::move(health).error();
  MetricsAccess access(connection, options, HostName(), clock, log);
  const auto scrape = [&](const kube::ServedRequest& request) {
    const std::optional<kube::HttpReply> refused = access.Refusal(request);
    return refused ? *refused : kube::HttpReply{200, "text/plain; version=0.0.4; charset=utf-8", metrics.Text()};
  };
  Result<std::unique_ptr<HttpServer>> exporter =
      Serve(options.metrics_address, {{"/metrics", scrape}}, access.Certificates());
  if (!exporter) return std::move(exporter).error();
  const auto leads = [&] { return !*elector || (*elector)->IsLeader(); };
  Result<std::unique_ptr<HttpServer>> extender = std::unique_ptr<HttpServer>();
  if (app.extender() != nullptr) {
    extender = ServeExtender(options, *app.extender(), {[&] { return app.IsReady(); }, leads}, log);
    if (!extender) return std::move(extender).error().with("extender");
  }

  log.Info("starting", {{"version", kVersion},
                        {"commit", kCommit},
                        {"server", kube::Describe(connection.config)},
                        {"metrics_port", *exporter ? (*exporter)->port() : 0},
                        {"health_port", *health ? (*health)->port() : 0},
                        {"extender_port", *extender ? (*extender)->port() : 0}});
  if (Status ready = WaitForServer(connection, options, clock, log, stop); !ready) return ready;
  std::optional<LeaderEndpoint> endpoint;
  std::jthread endpoint_thread;
  if (*extender && !options.extender_service.empty()) {
    endpoint.emplace(
        *connection.client, leads,
        LeaderEndpointOptions{
            {options.own_namespace, options.extender_service}, options.extender_pod_address, (*extender)->port()},
        clock, log);
    endpoint_thread = std::jthread([&](const std::stop_token& end) { endpoint->Run(end); });
  }
  const std::jthread rights(
      [&](const std::stop_token& end) { LogMissingRights(connection, options, clock, log, end); });
  return app.Run(stop);
}

}  // namespace
}  // namespace grus

int main(int argc, char** argv) {
  // An arena for each thread would multiply the memory of a process whose threads mostly wait.
  mallopt(M_ARENA_MAX, 2);
  kube::SignalStop signals;  // First: every thread must inherit the blocked signals.
  const kube::Result<grus::Options> options = grus::ParseOptions(argc, argv);
  if (!options) {
    std::fprintf(stderr, "grus-manager: %s\n", options.error().message().c_str());
    return 2;
  }
  if (!options->text_to_print.empty()) {
    std::fputs(options->text_to_print.c_str(), stdout);
    return 0;
  }
  const kube::Log log(options->log_level, options->log_format);
  const kube::Status ran = grus::Run(*options, log, signals.token());
  if (options->check) {
    if (!ran) std::fprintf(stderr, "grus-manager: %s\n", ran.error().message().c_str());
  } else if (!ran) {
    log.Error("grus-manager stops", {{"error", ran.error().message()}});
  } else {
    log.Info("stopped");
  }
  return ran ? 0 : 1;
}

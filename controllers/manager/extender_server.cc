// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/extender_server.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "clientlib/auth/certificate_pair.h"
#include "clientlib/auth/files.h"
#include "clientlib/auth/tls_material.h"
#include "controllers/version/version.h"

namespace grus {
namespace {

using kube::HttpReply;
using kube::HttpServer;
using kube::Result;

// 4,000 whole nodes of 16 KiB; a scheduler that sends names sends a hundredth of it.
constexpr std::size_t kMostOfOne = 64UL << 20, kMostOfAll = 128UL << 20;
// The scheduler asks for one pod at a time, and binds many, each of which waits for an answer.
constexpr int kThreads = 32;
// Go's clients keep connections for 90 s, and do not repeat a POST that meets our close.
constexpr kube::Duration kIdle = std::chrono::minutes(2);

constexpr char kInspectPath[] = "/gpushare-scheduler/inspect", kInspectBelow[] = "/gpushare-scheduler/inspect/";

using Verb = Result<std::string> (Extender::*)(std::string_view);

HttpReply Answer(Extender& extender, Verb verb, std::string_view what) {
  Result<std::string> answer = (extender.*verb)(what);
  if (!answer) return {.status = 400, .body = answer.error().message() + "\n"};
  return {.content_type = "application/json", .body = *std::move(answer)};
}

// Of /inspect/NODE; empty: of all nodes. Names of nodes need no escapes.
std::string_view NodeIn(std::string_view path) {
  path.remove_prefix(std::min(path.size(), sizeof(kInspectPath)));
  return path;
}

HttpServer::CertificateSource Certificates(const Options& options, const kube::Log& log) {
  if (options.extender_cert_file.empty()) return {};
  return [&options, &log] {
    auto read = kube::ReadCertificatePair(options.extender_cert_file, options.extender_key_file);
    if (!read) log.Warn("the extender's certificate cannot be read", {{"error", read.error().message()}});
    return read;
  };
}

kube::HttpClientTrust Clients(const Options& options, const kube::Log& log) {
  if (options.extender_client_ca_file.empty()) return {};
  const auto read_ca = [&options, &log] {
    Result<std::string> read = kube::ReadSmallFile(options.extender_client_ca_file);
    if (const kube::Status good = read ? kube::CheckCaCertificate(*read) : kube::Status(); !good) {
      read = kube::Error(good.error()).with(options.extender_client_ca_file);
    }
    if (!read) log.Warn("the extender's client CA cannot be read", {{"error", read.error().message()}});
    return read;
  };
  return {.ca = read_ca, .names = options.extender_clients};
}

}  // namespace

Result<std::unique_ptr<HttpServer>> ServeExtender(const Options& options, Extender& extender, ExtenderState state,
                                                  const kube::Log& log) {
  const auto serve = [&](Verb verb) {
    const auto answer = [&extender, verb, state](const kube::ServedRequest& request) -> HttpReply {
      if (!state.is_ready()) return {.status = 503, .body = "caches are not synced\n"};
      const bool is_bind = verb == &Extender::Bind;
      if (is_bind && !state.leads()) return {.status = 503, .body = "this replica does not lead\n"};
      return Answer(extender, verb, request.body);
    };
    return HttpServer::Handler(answer, kube::HttpMethods::kPost);
  };
  const auto inspect = [&extender, state](const kube::ServedRequest& request) -> HttpReply {
    if (!state.is_ready()) return {.status = 503, .body = "caches are not synced\n"};
    return Answer(extender, &Extender::Inspect, NodeIn(request.path));
  };
  const auto version = [](const kube::ServedRequest&) -> HttpReply { return {.body = kVersion}; };
  std::map<std::string, HttpServer::Handler> handlers = {{"/scheduler/filter", serve(&Extender::Filter)},
                                                         {"/scheduler/prioritize", serve(&Extender::Prioritize)},
                                                         {"/scheduler/preempt", serve(&Extender::Preempt)},
                                                         {"/scheduler/bind", serve(&Extender::Bind)},
                                                         {"/gpushare-scheduler/filter", serve(&Extender::Filter)},
                                                         {"/gpushare-scheduler/bind", serve(&Extender::Bind)},
                                                         {kInspectPath, inspect},
                                                         {kInspectBelow, inspect},
                                                         {"/gpushare-scheduler/version", version},
                                                         {"/version", version}};
  if (options.extender_client_ca_file.empty()) {
    const auto refuse = [](const kube::ServedRequest&) -> HttpReply {
      return {.status = 403, .body = "for clients with a certificate only: set --extender-client-ca-file\n"};
    };
    for (const char* path : {"/scheduler/bind", "/gpushare-scheduler/bind"}) {
      handlers[path] = HttpServer::Handler(refuse, kube::HttpMethods::kPost);
    }
    // It names pods of all namespaces.
    for (const char* path : {kInspectPath, kInspectBelow}) handlers[path] = refuse;
  }
  kube::HttpServerLimits limits;
  limits.body_bytes = kMostOfOne;
  limits.bodies_bytes = kMostOfAll;
  limits.threads = kThreads;
  limits.idle_time = kIdle;
  return HttpServer::Start(options.extender_address, std::move(handlers), limits, Certificates(options, log),
                           Clients(options, log));
}

}  // namespace grus

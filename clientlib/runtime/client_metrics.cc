// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/client_metrics.h"

namespace kube {
namespace {

std::string MethodOf(std::string_view verb) {
  if (verb == "create" || verb == "dry-run" || verb == "bind") return "POST";
  if (verb == "apply" || verb == "patch") return "PATCH";
  if (verb == "delete") return "DELETE";
  return "GET";
}

const std::vector<double>& Bounds() {
  static const std::vector<double> kBounds = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};
  return kBounds;
}

}  // namespace

void ClientMetrics::OnRequest(std::string_view verb, const Kind& kind, int code, Duration took) {
  registry_
      .GetCounter("rest_client_requests_total", "Number of HTTP requests, by status code, method and host.",
                  {"code", "method", "host"}, {code == 0 ? "<error>" : std::to_string(code), MethodOf(verb), host_})
      .Add();
  registry_
      .GetCounter("grus_requests_total", "Requests by verb and kind.", {"verb", "kind"},
                  {std::string(verb), std::string(kind.kind)})
      .Add();
  if (verb == "watch" || verb == "log") return;  // Opening a stream is no request latency.
  registry_
      .GetHistogram("rest_client_request_duration_seconds", "Request latency in seconds, by verb and host.", Bounds(),
                    {"verb", "host"}, {MethodOf(verb), host_})
      .Observe(std::chrono::duration<double>(took).count());
}

}  // namespace kube

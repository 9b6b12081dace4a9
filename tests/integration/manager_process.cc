// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/manager_process.h"

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "clientlib/http/curl_transport.h"

namespace grus::testing {

std::string ManagerPath() {
  const char* path = std::getenv("GRUS_MANAGER");
  if (path == nullptr) throw std::runtime_error("GRUS_MANAGER, the path of grus-manager, is not set");
  return path;
}

namespace {

// With the rights that the chart gives, unless the test says otherwise.
ManagerProcess::Variables AsChartAccount(ManagerProcess::Variables variables) {
  const char* kubeconfig = std::getenv("GRUS_MANAGER_KUBECONFIG");
  if (kubeconfig == nullptr) throw std::runtime_error("GRUS_MANAGER_KUBECONFIG is not set");
  variables.emplace_back("KUBECONFIG", kubeconfig);  // The first of two equal names counts.
  return variables;
}

}  // namespace

ManagerProcess::ManagerProcess(std::vector<std::string> arguments, const Variables& variables)
    : ChildProcess((arguments.insert(arguments.begin(), ManagerPath()), std::move(arguments)),
                   AsChartAccount(variables)) {}

Answer HttpGet(int port, const std::string& path) {
  static const kube::SystemClock clock;
  kube::TransportOptions options;
  options.server = "http://127.0.0.1:" + std::to_string(port);
  auto transport = kube::CurlTransport::Create(options, clock);
  if (!transport) throw std::runtime_error(transport.error().message());
  kube::HttpRequest request;
  request.target = path;
  auto response = (*transport)->Send(request, {});
  return response ? Answer{response->status, response->body} : Answer{};
}

}  // namespace grus::testing

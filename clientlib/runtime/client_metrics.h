// SPDX-License-Identifier: Apache-2.0
// Counts the client's requests under the names that client-go's dashboards know. Thread-safe.
#pragma once

#include <mutex>
#include <string>
#include <unordered_map>

#include "clientlib/client/client.h"
#include "clientlib/runtime/metrics.h"

namespace kube {

class ClientMetrics final : public RequestObserver {
 public:
  ClientMetrics(Registry& registry, std::string host) : registry_(registry), host_(std::move(host)) {}
  void OnRequest(std::string_view verb, const Kind& kind, int code, Duration took) override;

 private:
  Registry& registry_;
  const std::string host_;
};

}  // namespace kube

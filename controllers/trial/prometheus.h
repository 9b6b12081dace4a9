// SPDX-License-Identifier: Apache-2.0
// Asks a Prometheus for one number (its HTTP API, "Instant queries").
//
// The URL comes from a user: only servers that an administrator lists are asked, or users could look into the cluster's
// network through grus. The request carries only the query, no credentials; redirects are not followed; of the answer
// only a number or Prometheus' own error is used. An answer is limited to kMaxAnswer bytes and kTimeout.
// Thread-safe; one connection for each of the last kMostServers URLs.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/http/transport.h"

namespace grus {

// Replaces $NAMESPACE and $JOB in the query.
std::string ExpandQuery(std::string query, const std::string& ns, const std::string& job);

// What NVIDIA's dcgm-exporter reported for the GPUs of a trial's workers or pods in the last `seconds`: the peak memory
// of any of them, in MiB, and their mean utilisation in percent. Its labels for the pod of a GPU are pod and namespace,
// which Prometheus renames to exported_pod and exported_namespace unless the scrape has honorLabels.
std::string PeakMemoryQuery(const std::string& ns, const std::string& job, std::int64_t seconds);
std::string UtilizationQuery(const std::string& ns, const std::string& job, std::int64_t seconds);

// The value of the one series in the answer's body; none: there is no series, or its value is no number.
// Errors: kDecode; kInvalidArgument: the query is wrong, or has more than one series.
kube::Result<std::optional<double>> ReadPrometheusAnswer(const std::string& body);

class Prometheus {
 public:
  static constexpr std::size_t kMaxAnswer = 256 << 10, kMostServers = 16;
  static constexpr kube::Duration kTimeout = std::chrono::seconds(3);
  // A connection to scheme, host and port of a URL.
  using Connect = std::function<kube::Result<std::shared_ptr<kube::Transport>>(const std::string& server)>;

  // `servers`: those that may be asked, as "http://prometheus.monitoring:9090".
  Prometheus(Connect connect, const std::vector<std::string>& servers);
  // Over the network.
  Prometheus(const kube::Clock& clock, const std::vector<std::string>& servers);

  // Errors: kForbidden: the server is not listed.
  kube::Result<std::optional<double>> Ask(const std::string& url, const std::string& query, std::stop_token stop);

 private:
  kube::Result<std::shared_ptr<kube::Transport>> ServerOf(const std::string& server);

  const Connect connect_;
  std::set<std::string> allowed_;
  std::mutex mutex_;                                                             // Guards what follows.
  std::list<std::pair<std::string, std::shared_ptr<kube::Transport>>> servers_;  // Most recently used first.
};

}  // namespace grus

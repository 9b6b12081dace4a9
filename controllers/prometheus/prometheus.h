// SPDX-License-Identifier: Apache-2.0
// Asks a Prometheus (its HTTP API, "Instant queries").
//
// The URL may come from a user: only servers that an administrator lists are asked, or users could look into the
// cluster's network through grus. The request carries only the query, no credentials; redirects are not followed; of
// the answer only labels, numbers or Prometheus' own error are used. An answer is limited in bytes and in time.
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
#include "controllers/prometheus/instant_query.h"

namespace grus {

class Prometheus {
 public:
  static constexpr std::size_t kMaxAnswer = 256 << 10, kMostServers = 16;
  static constexpr kube::Duration kTimeout = std::chrono::seconds(3);    // For one number.
  static constexpr kube::Duration kPatience = std::chrono::seconds(20);  // For many series.
  // A connection to scheme, host and port of a URL.
  using Connect = std::function<kube::Result<std::shared_ptr<kube::Transport>>(const std::string& server)>;

  // `servers`: those that may be asked, as "http://prometheus.monitoring:9090".
  Prometheus(Connect connect, const kube::Clock& clock, const std::vector<std::string>& servers);
  // Over the network.
  Prometheus(const kube::Clock& clock, const std::vector<std::string>& servers);

  // One number; none: there is no series, or its value is no number. Errors: those of ReadAnswer(); kForbidden: the
  // server is not listed; kInvalidArgument: there are several series.
  kube::Result<std::optional<double>> Ask(const std::string& url, const std::string& query, std::stop_token stop);

  // Any number of series. Errors: those of ReadAnswer(); kForbidden.
  kube::Status AskAll(const std::string& url, const std::string& query, const OnSample& on_sample,
                      std::stop_token stop);

 private:
  kube::Result<std::shared_ptr<kube::Transport>> ServerOf(const std::string& server);
  kube::Status Query(const std::string& url, const std::string& query, AnswerLimits limits, kube::Duration patience,
                     const OnSample& on_sample, std::stop_token stop);

  const Connect connect_;
  const kube::Clock& clock_;
  std::set<std::string> allowed_;
  std::mutex mutex_;                                                             // Guards what follows.
  std::list<std::pair<std::string, std::shared_ptr<kube::Transport>>> servers_;  // Most recently used first.
};

}  // namespace grus

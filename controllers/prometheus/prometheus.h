// SPDX-License-Identifier: Apache-2.0
// Asks a Prometheus (its HTTP API, "Instant queries" and "Range queries").
//
// The URL may come from a user: only servers that an administrator lists are asked, or users could look into the
// cluster's network through grus. The request carries only the query, no credentials; redirects are not followed; of
// the answer only labels, numbers or Prometheus' own error are used. An answer is limited in bytes and in time.
// Thread-safe; one connection for each of the last kMostServers URLs.
#pragma once

#include <cstdint>
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
#include "controllers/prometheus/query_answer.h"

namespace grus {

struct TimeRange {  // Unix, in seconds.
  std::int64_t start = 0, end = 0, step = 15;
};

class Prometheus {
 public:
  static constexpr std::size_t kMaxAnswer = 256 << 10, kMostServers = 16;
  static constexpr kube::Duration kTimeout = std::chrono::seconds(3);    // For one number.
  static constexpr kube::Duration kPatience = std::chrono::seconds(20);  // For many series.
  // A connection to scheme, host and port of a URL.
  using Connect = std::function<kube::Result<std::shared_ptr<kube::Transport>>(const std::string& server)>;

  // `servers`: those that may be asked, as "http://prometheus.monitoring:9090". `connect`: empty: over the network.
  Prometheus(Connect connect, const kube::Clock& clock, const std::vector<std::string>& servers);
  // Over the network.
  Prometheus(const kube::Clock& clock, const std::vector<std::string>& servers);

  // One number; none: there is no series, or its value is no number. Errors: those of ReadAnswer(); kForbidden: the
  // server is not listed; kInvalidArgument: there are several series.
  kube::Result<std::optional<double>> Ask(const std::string& url, const std::string& query, std::stop_token stop);

  // Any number of series. Errors: those of ReadAnswer(); kForbidden.
  kube::Status AskAll(const std::string& url, const std::string& query, const OnSample& on_sample,
                      std::stop_token stop);

  // The same of several times: all samples of a series after another.
  kube::Status AskRange(const std::string& url, const std::string& query, TimeRange range, const OnSample& on_sample,
                        std::stop_token stop);

 private:
  kube::Result<std::shared_ptr<kube::Transport>> ServerOf(const std::string& server);
  struct Question {
    std::string text;
    std::optional<TimeRange> range = {};  // None: now.
    AnswerLimits limits = {};
    kube::Duration patience = kPatience;
  };
  static kube::HttpRequest RequestFor(const std::string& path, const Question& question);
  kube::Status Query(const std::string& url, const Question& question, const OnSample& on_sample, std::stop_token stop);

  const Connect connect_;
  const kube::Clock& clock_;
  std::set<std::string> allowed_;
  std::mutex mutex_;                                                             // Guards what follows.
  std::list<std::pair<std::string, std::shared_ptr<kube::Transport>>> servers_;  // Most recently used first.
};

}  // namespace grus

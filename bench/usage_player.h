// SPDX-License-Identifier: Apache-2.0
// Plays the exporters of a cluster of jobs for a Prometheus: one GPU a pod, whose numbers are different at each scrape
// and known afterwards.
//
// Names and labels are those of dcgm-exporter and of the kubelet's cAdvisor. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/meta.h"
#include "clientlib/runtime/http_server.h"

namespace bench {

class UsagePlayer {
 public:
  static kube::Result<std::unique_ptr<UsagePlayer>> Start();

  // Their place: a job's pods come one after another.
  void Add(std::vector<kube::ObjectKey> pods_of_job);
  void Remove(std::size_t job);  // From the next scrape on.

  struct Seen {  // Of all pods of a job, in all scrapes.
    int scrapes = 0;
    std::int64_t most_utilization_percent = 0, most_memory_mib = 0;
  };
  Seen SeenOf(std::size_t job) const;
  int scrapes() const;
  int port() const { return server_->port(); }

 private:
  struct Job {
    std::vector<kube::ObjectKey> pods;
    bool is_there = true;
    Seen seen = {};
  };
  UsagePlayer() = default;
  std::string Scrape();

  mutable std::mutex mutex_;  // Guards what follows, up to server_.
  std::vector<Job> jobs_;
  int scrapes_ = 0;
  std::size_t last_size_ = 0;
  std::unique_ptr<kube::HttpServer> server_;
};

}  // namespace bench

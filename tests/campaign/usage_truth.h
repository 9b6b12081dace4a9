// SPDX-License-Identifier: Apache-2.0
// What the pods with GPUs of a run really did: what its Prometheus scrapes, and by what its rules judge.
//
// How busy a pod is follows from its image, "load-70", its name and the time. Jobs are the controllers of their pods,
// or pods without one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/testing/faults/workload.h"

namespace grus::testing {

// At one scrape.
struct PodSample {
  int utilization = 0;                      // Percent, at most kSpread from its load.
  std::int64_t memory_mib = 0;              // Of each GPU, from 100 times its load, at most kMemorySpread more.
  double cores = 0, network = 0, disk = 0;  // And bytes a second.
  std::int64_t working_set = 0;             // Bytes.
};
inline constexpr int kSpread = 5;
inline constexpr std::int64_t kMemorySpread = 500;

class UsageTruth {
 public:
  static constexpr kube::Duration kScrape = std::chrono::seconds(15);

  struct Pod {
    kube::ObjectKey key = {};
    std::string uid = {}, job_uid = {};
    int gpus = 0, load = 0;
    kube::TimePoint began = {};  // When it ran; `started`: as it says itself.
    kube::Time started = {};
    std::optional<kube::TimePoint> gone = {};  // When it had ended, or was deleted.
    std::optional<kube::Time> ended = {};      // The same by the wall clock.

    bool RunsAt(kube::TimePoint time) const { return began <= time && (!gone || time < *gone); }
    PodSample At(std::int64_t scrape) const;
  };
  // Of all its pods so far.
  struct Job {
    kube::Time start = {};
    std::optional<kube::Time> end = {};  // None: it has pods that run.
    int load = 0, gpus = 0, pods = 0;    // The last two are the most at a time.
    double gpu_seconds = 0;
    int most_utilization = 0;          // Of all scrapes,
    std::int64_t most_memory_mib = 0;  // and this one.
  };

  explicit UsageTruth(kube::testing::World& world);

  const std::vector<Pod>& pods() const { return pods_; }
  std::vector<std::string> Jobs() const;                      // UIDs.
  std::optional<Job> Find(const std::string& job_uid) const;  // As it is now.

  static std::int64_t ScrapeAt(kube::TimePoint time) { return time.time_since_epoch() / kScrape; }
  static kube::TimePoint TimeOf(std::int64_t scrape) { return kube::TimePoint(kScrape * scrape); }
  // The first and the last scrape of the pod; the last is before the first if it had none.
  std::pair<std::int64_t, std::int64_t> ScrapesOf(const Pod& pod) const;

 private:
  void Note(const kube::testing::ServerChange& change);

  const kube::testing::Simulation& simulation_;
  std::vector<Pod> pods_;
};

}  // namespace grus::testing

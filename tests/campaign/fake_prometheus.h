// SPDX-License-Identifier: Apache-2.0
// A Prometheus in virtual time: each 15 s it scrapes each pod with GPUs, as dcgm-exporter and the kubelet's cAdvisor
// show it. It answers the queries of the profiler, and plays the faults whose names begin with "query-".
//
// Of PromQL it knows which metric a query is about, over which window, and which pods it names. It notes what it told,
// once its asker has read the answer to its end.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/campaign/usage_truth.h"

namespace grus::testing {

class FakePrometheus final : public kube::testing::AskedServer {
 public:
  // Of a job, by answers that are true, and under names that no pods of other jobs had lately.
  struct Told {
    bool has_numbers = false;          // While its pods ran, or shortly after.
    bool has_series = false;           // Of its GPUs.
    std::int64_t most_memory_mib = 0;  // That its asker should know, however many answers before failed.
  };

  explicit FakePrometheus(kube::testing::World& world) : simulation_(world.simulation), truth_(world) {}

  kube::Result<kube::StreamResponse> Answer(const kube::HttpRequest& request,
                                            const std::vector<kube::testing::Fault>& faults,
                                            std::stop_token stop) override;

  const UsageTruth& truth() const { return truth_; }
  Told ToldOf(const std::string& job_uid) const;

 private:
  class Body;
  enum class Values { kTrue, kNan, kBlank, kTooHigh, kDeadPods };
  struct Whole {  // An answer.
    std::string text;
    std::map<std::string, Told> told = {};  // By job: what it adds.
    bool is_about_memory = false;
  };
  // Since `from`, the clock of the server is off by `offset`. What it scrapes is refused until its clock has passed
  // `after`: it has samples of that time.
  struct ClockPeriod {
    kube::TimePoint from{};
    kube::Duration offset{};
    kube::TimePoint after{};
  };

  void Begin(const kube::testing::Fault& fault);
  // The asker should still listen to what is told of the pod.
  bool IsHeard(const UsageTruth::Pod& pod) const;
  void SetClock(kube::Duration offset);
  // When the scrape was, by the clock of the server; nullopt: the server does not have it.
  std::optional<kube::TimePoint> StampOf(std::int64_t scrape) const;
  kube::TimePoint ItsNow() const { return simulation_.Now() + clock_.back().offset; }

  Whole Instant(const std::string& query, Values values);
  Whole Range(const std::string& form, Values values) const;
  // Scrapes of the pod that the server has within the window before its clock, oldest first.
  std::vector<std::int64_t> ScrapesIn(const UsageTruth::Pod& pod, kube::Duration window) const;
  bool IsOnlyOneOfItsName(const UsageTruth::Pod& pod) const;
  void NoteMemory(const UsageTruth::Pod& pod, std::map<std::string, Told>& told) const;

  kube::testing::Simulation& simulation_;
  const UsageTruth truth_;
  std::map<std::string, Told> told_;
  std::optional<kube::TimePoint> memory_told_;  // When a query about memory was last answered.
  kube::TimePoint away_until_{}, late_until_{}, empty_until_{};
  kube::TimePoint silent_since_{};  // The beginning of the time that one of the first two ends.
  std::vector<ClockPeriod> clock_ = {{}};
};

}  // namespace grus::testing

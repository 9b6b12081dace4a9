// SPDX-License-Identifier: Apache-2.0
// Views of a job for tests: what the cache would say, in a few words.
//
//   const View view = ViewBuilder().MinMax(2, 4).Granted(4).Ready({0, 1}).Unschedulable({2, 3}, -20).Build();
//
// Times are seconds from the moment of the view. The job is that of test_job.h.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/controllers/elastic/test_pods.h"

namespace grus {

class ViewBuilder {
 public:
  using Ordinals = std::vector<int>;
  ViewBuilder() : job_(TestJob()) { view_.now = At(0); }

  ViewBuilder& MinMax(int min, int max) {
    job_.spec.workers.min_replicas = min;
    job_.spec.workers.max_replicas = max;
    return *this;
  }
  ViewBuilder& Target(int target) {
    job_.spec.workers.target_replicas = target;
    return *this;
  }
  // Anything else about the job.
  template <typename F>
  ViewBuilder& Job(F change) {
    change(job_);
    return *this;
  }
  ViewBuilder& LastScale(std::string reason, int seconds, int from = 0, int to = 0) {
    job_.status.last_scale = api::LastScale{from, to, std::move(reason), At(seconds)};
    return *this;
  }
  ViewBuilder& Status(const api::ElasticHorovodJobStatus& status) {
    job_.status = status;
    return *this;
  }

  ViewBuilder& Granted(int workers) {
    view_.workers.granted = workers;
    return *this;
  }
  ViewBuilder& Bound(const Ordinals& ordinals, int since = -100) {
    return Add(ordinals, [&](Worker& w) {
      w.is_bound = true;
      w.bound_since = At(since);
    });
  }
  ViewBuilder& Ready(const Ordinals& ordinals, int since = -90) {
    return Add(ordinals, [&](Worker& w) {
      w.is_bound = w.is_ready = true;
      w.bound_since = w.ready_since = At(since);
    });
  }
  ViewBuilder& Waiting(const Ordinals& ordinals) {
    return Add(ordinals, [](Worker&) {});
  }
  // By the gang's gate.
  ViewBuilder& Gated(const Ordinals& ordinals) {
    return Add(ordinals, [](Worker& w) { w.is_gated = true; });
  }
  ViewBuilder& GatedByOthers(const Ordinals& ordinals) {
    return Add(ordinals, [](Worker& w) { w.foreign_gate = "example.com/admission"; });
  }
  ViewBuilder& Unschedulable(const Ordinals& ordinals, int since) {
    return Add(ordinals, [&](Worker& w) { w.unschedulable_since = At(since); });
  }
  ViewBuilder& Lost(const Ordinals& ordinals) {
    return Add(ordinals, [](Worker& w) { w.is_bound = w.is_ready = w.has_lost_node = true; });
  }
  // Its node says nothing any more; what it said last was that all is well.
  ViewBuilder& CutOff(const Ordinals& ordinals) {
    return Add(ordinals, [](Worker& w) { w.is_bound = w.is_cut_off = true; });
  }
  ViewBuilder& Ending(const Ordinals& ordinals) {
    return Add(ordinals, [](Worker& w) { w.is_bound = w.is_ending = true; });
  }
  // Bound, and unable to start since then.
  ViewBuilder& Broken(const Ordinals& ordinals, int since, const std::string& trouble = "cannot pull its image") {
    return Add(ordinals, [&](Worker& w) {
      w.is_bound = true;
      w.bound_since = w.unready_since = At(since);
      w.trouble = trouble;
    });
  }

  ViewBuilder& Room(int copies, int nodes = 4) {
    view_.room = {copies, nodes};
    return *this;
  }
  ViewBuilder& NoRoom(std::string why, bool is_refused_by_queue = false) {
    view_.room = {0, 4};
    view_.is_refused_by_queue = is_refused_by_queue;
    view_.why_no_room = std::move(why);
    return *this;
  }
  // Of the namespace's GPUs so many workers may have.
  ViewBuilder& Quota(int workers) {
    view_.quota = QuotaLimit{workers, "team", "requests.nvidia.com/gpu", "requests.nvidia.com/gpu: 7 of 8 used"};
    return *this;
  }
  ViewBuilder& Hosts(const Ordinals& ordinals, int revision = 1, int published = -60) {
    view_.hosts = TestHosts(ordinals, revision, published);
    return *this;
  }
  ViewBuilder& Launcher(LauncherState state) {
    view_.launcher = state;
    return *this;
  }
  ViewBuilder& LauncherMessage(std::string message) {
    view_.launcher_message = std::move(message);
    return *this;
  }
  ViewBuilder& LauncherEnding() {
    view_.is_launcher_ending = true;
    return *this;
  }
  ViewBuilder& LauncherRuns(int pushed_revision = 0) {
    view_.launcher = LauncherState::kActive;
    view_.launcher_pods.push_back(RunningLauncher(pushed_revision));
    return *this;
  }

  View Build() const {
    View view = view_;
    view.job = std::make_shared<api::ElasticHorovodJob>(job_);
    std::sort(view.pods.begin(), view.pods.end(),
              [](const Worker& a, const Worker& b) { return a.ordinal < b.ordinal; });
    return view;
  }

 private:
  template <typename F>
  ViewBuilder& Add(const Ordinals& ordinals, F change) {
    for (const int ordinal : ordinals) {
      change(view_.pods.emplace_back(TestWorker(ordinal)));
    }
    return *this;
  }

  api::ElasticHorovodJob job_;
  View view_;
};

}  // namespace grus

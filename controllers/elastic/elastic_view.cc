// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_view.h"

#include <algorithm>
#include <chrono>

#include "controllers/elastic/elastic_sizes.h"

namespace grus {

int View::alive() const {
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [](const Worker& w) { return !w.is_leaving(); }));
}

int View::HoldingOn() const {
  // A node that does not answer does not end its pods: do not wait for these for ever.
  constexpr kube::Duration kSlack = std::chrono::seconds(30);
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [&](const Worker& w) {
    const bool is_late = w.leaves_by && now.value - w.leaves_by->value >= kSlack;
    return (w.is_ending || w.is_left_over) && w.is_bound && !w.has_ended && !w.has_lost_node && !is_late;
  }));
}

int View::bound() const {
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [](const Worker& w) { return w.is_on_node(); }));
}

int View::owed() const { return std::max(0, granted() - bound() - gated_by_others()); }

int View::gated_by_others(const WorkerSet& without) const {
  return static_cast<int>(std::count_if(pods.begin(), pods.end(), [&](const Worker& w) {
    return !w.is_leaving() && !w.foreign_gate.empty() && !without.contains(&w);
  }));
}

bool View::has_left_overs() const {
  const bool has_workers =
      std::any_of(pods.begin(), pods.end(), [](const Worker& w) { return w.is_left_over && !w.is_ending; });
  return has_workers || (is_launcher_left_over && !is_launcher_ending);
}

bool View::has_bound_launcher() const {
  return std::any_of(launcher_pods.begin(), launcher_pods.end(), [](const auto& pod) { return pod.is_on_node(); });
}

std::optional<SchedulerSilence> LongestSilence(const View& view) {
  std::optional<SchedulerSilence> longest;
  const auto look = [&](const PodState& pod, const std::optional<kube::Time>& since) {
    if (pod.is_leaving() || pod.silent_scheduler.empty() || !since) return;
    const kube::Duration lasted = Waited(view.now, *since);
    if (!longest || lasted > longest->lasted) longest = SchedulerSilence{&pod, lasted};
  };
  for (const Worker& worker : view.pods) look(worker, worker.asked_since);
  for (const LauncherPod& pod : view.launcher_pods) look(pod, pod.created);
  return longest;
}

WorkersState ReadWorkersState(const View& view) {
  WorkersState state;
  int ungated = 0;
  bool is_any_let_go = false;
  for (const Worker& worker : view.pods) {
    if (worker.is_leaving()) continue;
    state.gang = std::max(state.gang, worker.gang);
    is_any_let_go |= worker.is_let_go();
    if (!worker.is_gated) ++ungated;
  }
  const int told = view.job->status.replicas.granted;
  if (told == 0 && !is_any_let_go) return state;
  // Those of a start are at least those that the job needs.
  state.is_start_untold = told == 0;
  state.granted = std::max({ungated, told, told == 0 ? SizesOf(view.job->spec).NeededToStart() : 0});
  return state;
}

}  // namespace grus

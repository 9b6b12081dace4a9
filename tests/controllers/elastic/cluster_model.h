// SPDX-License-Identifier: Apache-2.0
// A cluster in small, for playing a job's plan against it: nodes with places for one worker each, other
// people's pods, the StatefulSet controller, the scheduler, and kubelets that end pods slowly.
//
// Only what a plan can feel is modelled: ordinals are 0..N-1 and the highest go first; pods are born from the
// newest template; the scheduler picks any pending pod and any node; the controller lags; a parked pod is
// deleted only if it is still unbound. Everything random comes from the caller's generator.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "controllers/elastic/elastic_plan.h"
#include "tests/controllers/elastic/test_job.h"

namespace grus {

class ClusterModel {
 public:
  struct Node {
    int places = 0, foreign = 0;
    bool is_there = true;
  };
  struct Pod {
    std::string uid;
    bool is_gated = false;
    int node = -1;  // -1: not bound.
    std::int64_t bound_at = 0, gone_at = -1, unschedulable_since = -1;
    bool is_ending() const { return gone_at >= 0; }
  };

  explicit ClusterModel(std::mt19937& random) : random_(random), job_(TestJob()) {
    job_.spec.elastic.unschedulable_grace_seconds = 5;
    job_.spec.elastic.cooldown_seconds = 10;
    job_.spec.elastic.shrink_grace_seconds = 6;
  }

  api::ElasticHorovodJob& job() { return job_; }
  std::vector<Node>& nodes() { return nodes_; }
  std::map<int, Pod>& pods() { return pods_; }
  const std::optional<HostList>& hosts() const { return hosts_; }
  void Pass(int seconds) { now_ += seconds; }

  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  // Places that are neither foreign nor on a node that is gone: what the job could hold at most.
  int PlacesForJob() const {
    int places = 0;
    for (const Node& node : nodes_) places += node.is_there ? node.places - node.foreign : 0;
    return places;
  }
  int FreePlaces(int node) const {
    const Node& n = nodes_[static_cast<std::size_t>(node)];
    if (!n.is_there) return 0;
    const auto own = std::count_if(pods_.begin(), pods_.end(), [&](const auto& p) { return p.second.node == node; });
    return n.places - n.foreign - static_cast<int>(own);
  }
  bool Runs(const Pod& pod) const {
    return pod.node >= 0 && !pod.is_ending() && nodes_[static_cast<std::size_t>(pod.node)].is_there;
  }

  View Observe() const {
    View view;
    view.job = std::make_shared<api::ElasticHorovodJob>(job_);
    view.now = At(now_);
    view.workers = set_;
    view.hosts = hosts_;
    view.launcher = has_launcher_ ? LauncherState::kActive : LauncherState::kAbsent;
    if (has_launcher_) {
      LauncherPod pod;
      pod.is_bound = pod.is_running = true;
      view.launcher_pods.push_back(pod);
    }
    int running = 0;
    for (const auto& [ordinal, pod] : pods_) {
      Worker worker;
      worker.ordinal = ordinal;
      worker.name = PodName(ordinal);
      worker.uid = pod.uid;
      worker.address = "10.0.0." + pod.uid;
      worker.is_gated = pod.is_gated;
      worker.is_bound = pod.node >= 0;
      worker.has_lost_node = pod.node >= 0 && !nodes_[static_cast<std::size_t>(pod.node)].is_there;
      worker.is_ending = pod.is_ending();
      worker.is_ready = worker.is_bound && !pod.is_ending() && now_ - pod.bound_at >= 2;
      if (worker.is_ready) worker.ready_since = At(pod.bound_at + 2);
      if (pod.unschedulable_since >= 0) worker.unschedulable_since = At(pod.unschedulable_since);
      running += Runs(pod);
      view.pods.push_back(std::move(worker));
    }
    // As the reconciler asks the ledger.
    const int wanted = SizesOf(job_.spec).wanted, granted = set_ ? set_->granted : 0;
    if (granted < wanted || running < granted) {
      const int owed = std::max(0, granted - running);
      int free = 0;
      for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) free += FreePlaces(node);
      const int copies = std::min(free, std::max(0, wanted - granted) + owed);
      view.room = {std::max(0, copies - owed), static_cast<int>(nodes_.size())};
    }
    return view;
  }

  // What the reconciler writes for `plan`, which was made from `view`. The world may have moved on between.
  void Apply(const View& view, const Plan& plan) {
    if (!plan.workers) {
      set_.reset();
    } else if (!set_ || set_->replicas != plan.workers->replicas || set_->granted != plan.workers->granted ||
               set_->is_gated != plan.workers->is_gated) {
      set_ = plan.workers;
      set_->is_observed = false;
    }
    for (const Worker& worker : view.pods) {
      const auto pod = pods_.find(worker.ordinal);
      if (pod == pods_.end() || pod->second.uid != worker.uid) continue;
      const auto holds = [&](const auto& list) { return std::find(list.begin(), list.end(), &worker) != list.end(); };
      if (std::find(plan.bury.begin(), plan.bury.end(), worker.name) != plan.bury.end()) {
        pods_.erase(pod);
      } else if (holds(plan.park)) {
        if (pod->second.node < 0) pods_.erase(pod);  // The resourceVersion is a precondition.
      } else if (holds(plan.lift)) {
        pod->second.is_gated = false;
      }
    }
    hosts_ = plan.hosts;
    has_launcher_ = plan.wants_launcher && !plan.restart_launcher;
    job_.status = plan.status;
  }

  void RunStatefulSetController() {
    const int replicas = set_ ? set_->replicas : 0;
    for (auto it = pods_.begin(); it != pods_.end();) {
      Pod& pod = it->second;
      const bool is_unbound = pod.node < 0;
      if (it->first >= replicas && is_unbound) {
        it = pods_.erase(it);
        continue;
      }
      if (it->first >= replicas) End(pod);
      ++it;
    }
    for (int ordinal = 0; ordinal < replicas; ++ordinal) {
      if (pods_.contains(ordinal)) continue;
      Pod pod;
      pod.uid = std::to_string(++last_uid_);
      pod.is_gated = set_->is_gated;
      pods_[ordinal] = pod;
    }
    if (set_) set_->is_observed = true;
  }

  void RunScheduler() {
    std::vector<Pod*> pending;
    for (auto& [ordinal, pod] : pods_) {
      if (pod.node < 0 && !pod.is_gated) pending.push_back(&pod);
    }
    std::shuffle(pending.begin(), pending.end(), random_);
    for (Pod* pod : pending) {
      std::vector<int> fit;
      for (int node = 0; node < static_cast<int>(nodes_.size()); ++node) {
        if (FreePlaces(node) > 0) fit.push_back(node);
      }
      if (fit.empty()) {
        if (pod->unschedulable_since < 0) pod->unschedulable_since = now_;
        continue;
      }
      pod->node = fit[static_cast<std::size_t>(Below(static_cast<int>(fit.size())))];
      pod->bound_at = now_;
      pod->unschedulable_since = -1;
    }
  }

  void RunKubelets() {
    std::erase_if(pods_, [&](const auto& entry) {
      const Pod& pod = entry.second;
      return pod.is_ending() && pod.gone_at <= now_ && nodes_[static_cast<std::size_t>(pod.node)].is_there;
    });
  }

  void End(Pod& pod) {
    if (!pod.is_ending()) pod.gone_at = now_ + 3;
  }

 private:
  std::mt19937& random_;
  api::ElasticHorovodJob job_;
  std::vector<Node> nodes_;
  std::map<int, Pod> pods_;  // By ordinal.
  std::optional<WorkersState> set_;
  std::optional<HostList> hosts_;
  bool has_launcher_ = false;
  std::int64_t now_ = 0;
  int last_uid_ = 0;
};

}  // namespace grus

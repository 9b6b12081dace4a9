// SPDX-License-Identifier: Apache-2.0
// The controller of docs/new-controller.md: a Quorum is Ready while enough of its pods run.
#pragma once

#include "clientlib/model/pod.h"
#include "clientlib/runtime/controller.h"
#include "controllers/frame/key_feed.h"
#include "controllers/frame/kstatus.h"
#include "controllers/frame/planned_event.h"
#include "controllers/frame/retry_times.h"
#include "controllers/frame/status_writer.h"
#include "tests/controllers/frame/example_kind.h"

namespace example {

using grus::KeyFeed, grus::Kstatus, grus::News, grus::PlannedEvent, grus::Standing, grus::StatusWriter;

inline constexpr char kQuorumLabel[] = "example.com/quorum";  // On its pods: its name.

// --- View: what the caches say of one Quorum, as one value.
struct QuorumView {
  std::shared_ptr<const Quorum> quorum;
  kube::Time now;
  int running = 0;
};

// --- Plan: a pure function of the view.
struct QuorumPlan {
  QuorumStatus status;
  std::vector<PlannedEvent> events;
};

inline QuorumPlan PlanQuorum(const QuorumView& view) {
  const Quorum& quorum = *view.quorum;
  QuorumPlan plan{quorum.status, {}};
  plan.status.running = view.running;
  plan.status.observed_generation = quorum.metadata.generation;
  const bool is_met = view.running >= quorum.spec.minimum;
  const std::string counts = std::to_string(view.running) + " pods run; " + std::to_string(quorum.spec.minimum) +
                             (is_met ? " are needed" : " are needed: start more");
  Kstatus(plan.status.conditions, quorum.metadata.generation, view.now)
      .Say(is_met ? Standing::kReady : Standing::kReconciling, is_met ? "Met" : "TooFew", counts);
  if (kube::IsConditionTrue(quorum.status.conditions, "Ready") && !is_met) {
    plan.events.push_back({kube::EventType::kWarning, "QuorumLost", "CountPods", counts});
  }
  return plan;
}

// --- News: which changes of a pod the plan reads.
inline News NewsOf(const kube::Pod* before, const kube::Pod* after) {
  const auto runs = [](const kube::Pod* pod) { return pod && pod->status.phase == "Running"; };
  return runs(before) == runs(after) ? News::kNone : News::kSoon;
}

// --- Reconciler: reads the caches, plans, writes.
class QuorumReconciler final : public kube::Reconciler {
 public:
  QuorumReconciler(kube::Client& client, kube::Informer& quorums, kube::Informer& pods, kube::EventRecorder& events,
                   const kube::Clock& clock, const kube::Log& log)
      : quorums_(quorums),
        pods_(pods),
        events_(events),
        clock_(clock),
        log_(log),
        pods_by_quorum_(pods.AddIndex([](const kube::Object& pod) -> std::vector<std::string> {
          const auto key = QuorumOf(pod);
          return key ? std::vector{key->ToString()} : std::vector<std::string>();
        })),
        statuses_(client, &writes_, clock) {}

  void FeedQueue(kube::WorkQueue& queue) {
    feed_.Open(queue);
    feed_.AddObjectsOf(quorums_);
    pods_.AddHandler([this](const kube::Change& change, bool is_initial) {
      const auto* before = static_cast<const kube::Pod*>(change.before.get());
      const auto* after = static_cast<const kube::Pod*>(change.after.get());
      const auto old_key = before ? QuorumOf(*before) : std::nullopt, key = after ? QuorumOf(*after) : std::nullopt;
      // A new label takes the pod from one Quorum and gives it to another: both need a pass.
      if (old_key && old_key != key) feed_.Add(*old_key, NewsOf(before, nullptr));
      if (key) feed_.Add(*key, NewsOf(old_key == key ? before : nullptr, after), is_initial);
    });
  }

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override {
    const auto quorum = quorums_.Get<Quorum>(key);
    if (!quorum) {
      writes_.Forget(key);
      statuses_.Forget(key);
      return kube::Action::AwaitChange();
    }
    if (!writes_.HasCaughtUp(quorum->metadata, {&quorums_})) return kube::Action::After(grus::kCacheLag);
    const QuorumPlan plan = PlanQuorum(Observe(quorum));
    // That it is ready, or not, is told at once; a count may wait for the next.
    const bool is_minor = kube::IsConditionTrue(quorum->status.conditions, "Ready") ==
                          kube::IsConditionTrue(plan.status.conditions, "Ready");
    const kube::Duration patience = is_minor ? grus::kMinorChangeWait : kube::Duration::zero();
    const auto written = statuses_.Write(*quorum, plan.status, patience, stop);
    if (!written) return written.error();  // Tried again with backoff.
    if (written->deferred) return kube::Action::After(*written->deferred);
    grus::Tell(plan.events, events_, log_, kube::KindOf<Quorum>(), quorum->metadata, "quorum");
    return kube::Action::After(grus::kSafetyResync);
  }

 private:
  static std::optional<kube::ObjectKey> QuorumOf(const kube::Object& pod) {
    const std::string_view name = pod.metadata.Label(kQuorumLabel);
    return name.empty() ? std::nullopt : std::optional(kube::ObjectKey{pod.metadata.ns, std::string(name)});
  }

  QuorumView Observe(const std::shared_ptr<const Quorum>& quorum) const {
    QuorumView view{quorum, kube::Time{clock_.WallNow()}, 0};
    for (const auto& pod : pods_.ByIndex<kube::Pod>(pods_by_quorum_, quorum->metadata.Key().ToString())) {
      if (pod->status.phase == "Running") ++view.running;
    }
    return view;
  }

  kube::Informer& quorums_;
  kube::Informer& pods_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  const kube::Store::IndexId pods_by_quorum_;
  kube::WriteTracker writes_;
  KeyFeed feed_{writes_, grus::kMinorChangeWait};
  StatusWriter statuses_;
};

}  // namespace example

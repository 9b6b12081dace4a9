// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/kubelet.h"

#include <algorithm>
#include <utility>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kCreating = "ContainerCreating";
constexpr int kTerminated = 143, kKilled = 137;  // By SIGTERM and SIGKILL.
// The kubelet checks a pod whose image could not be pulled again after this time; one whose start is put off when it
// may start, and every minute or so (pod_workers.go).
constexpr Lag kPullRetry{10s, 15s};
constexpr Duration kResync = 1min;
Lag StartRetry(Duration left) { return {std::min(left, kResync), std::min(left, kResync) * 3 / 2}; }

}  // namespace

Kubelet::Kubelet(const ClusterContext& context)
    : context_(context),
      loop_(context, context.options.kubelet, [this](const ObjectKey& key) { return Reconcile(key); }) {}

void Kubelet::Observe(const ServerChange& change) {
  const Json& object = change.after ? *change.after : *change.before;
  if (change.resource == "nodes") {
    const std::string name(TextAt(object, {"metadata", "name"}));
    if (change.after) {
      // A node that returns under its name finds the pods that are still bound to it.
      if (nodes_.insert(name).second)
        context_.simulation.After(context_.Draw(context_.options.kubelet), [this, name] { Wake(name); });
    } else {
      nodes_.erase(name);
      dead_.erase(name);
    }
  } else if (change.resource == "pods" && !NodeOf(object).empty()) {
    if (change.after) {
      loop_.Add(KeyOf(object));
    } else {
      records_.erase(KeyOf(object));
    }
  }
}

void Kubelet::SetAlive(const std::string& node, bool is_alive) {
  if (!is_alive) {
    dead_.insert(node);
  } else if (dead_.erase(node) > 0) {
    Wake(node);
  }
}

void Kubelet::Wake(const std::string& node) {
  for (const FakeApiServer::ObjectPtr& pod : context_.server.List("pods")) {
    if (NodeOf(*pod) == node) loop_.Add(KeyOf(*pod));
  }
}

bool Kubelet::Reconcile(const ObjectKey& key) {
  const FakeApiServer::ObjectPtr pod = context_.server.Get("pods", key);
  if (!pod || !nodes_.contains(NodeOf(*pod)) || dead_.contains(NodeOf(*pod))) return true;
  Record& record = records_[key];
  if (record.uid != UidOf(*pod)) {
    const TimePoint now = context_.simulation.Now();
    record = {.uid = std::string(UidOf(*pod)), .start_at = now + context_.Draw(context_.options.start)};
  }
  if (IsBeingDeleted(*pod)) return Stop(key, *pod, record);
  if (HasEnded(*pod)) return true;
  return PhaseOf(*pod) == "Running" ? Run(key, *pod, record) : Start(key, *pod, record);
}

bool Kubelet::WaitUntil(const ObjectKey& key, TimePoint at) {
  const TimePoint now = context_.simulation.Now();
  if (at <= now) return true;
  if (at != TimePoint::max()) loop_.AddAfter(key, at - now);
  return false;
}

bool Kubelet::Stop(const ObjectKey& key, const Json& pod, Record& record) {
  const TimePoint now = context_.simulation.Now();
  const TimePoint latest = now + StopLimit(pod);
  if (record.stop_at == TimePoint::max()) {
    const bool is_running = PhaseOf(pod) == "Running" && !record.is_down;
    const std::optional<Duration> time = is_running ? PlanOf(pod).stop_time : std::nullopt;
    record.stop_at = now + (time ? *time : context_.Draw(context_.options.stop));
  }
  record.is_killed |= record.stop_at > latest;
  record.stop_at = std::min(record.stop_at, latest);
  if (!WaitUntil(key, record.stop_at)) return true;
  // Report the end of a deleted pod first, so that watchers see it; the next pass removes the pod.
  if (!HasEnded(pod)) return End(key, pod, record, StoppedState(pod, record));
  // With no grace left the pod goes with its last finalizer.
  return IntAt(pod, {"metadata", "deletionGracePeriodSeconds"}, 1) == 0 || context_.DeleteObject("pods", pod, 0);
}

Json Kubelet::StoppedState(const Json& pod, const Record& record) const {
  if (!record.end_state.is_null()) return record.end_state;
  if (record.is_down) return record.crashed_state;
  if (PhaseOf(pod) != "Running") return LostState();
  return TerminatedState(record.is_killed ? kKilled : kTerminated, record.running_since, context_.Now());
}

bool Kubelet::Start(const ObjectKey& key, const Json& pod, Record& record) {
  if (!WaitUntil(key, record.start_at)) {
    return ReportDown(key, record, [](const Json&) { return WaitingState(kCreating, ""); });
  }
  const ContainerPlan plan = PlanOf(pod);
  if (plan.waiting_reason == "ErrImagePull") return Pull(key, pod, record);
  if (!plan.waiting_reason.empty()) {
    return ReportDown(key, record,
                      [&](const Json&) { return WaitingState(plan.waiting_reason, plan.waiting_message); });
  }
  if (!WaitUntil(key, record.pull_backoff.End(record.failed_at))) return true;
  if (plan.run_time) record.end_at = context_.simulation.Now() + *plan.run_time;
  Launch(key, pod, record);
  return ReportRunning(key, pod, record);
}

void Kubelet::Launch(const ObjectKey& key, const Json& pod, Record& record) {
  const TimePoint now = context_.simulation.Now();
  const bool is_late = context_.simulation.OneIn(context_.options.late_ready_one_in) || IsProbed(pod);
  record.ready_at = now + (is_late ? context_.Draw(context_.options.start) : Duration::zero());
  record.running_since = context_.Now();
  WaitUntil(key, is_late ? std::min(record.end_at, record.ready_at) : record.end_at);
}

// Reports the result of the previous check; then tries again, unless that is put off.
bool Kubelet::Pull(const ObjectKey& key, const Json& pod, Record& record) {
  if (!WaitUntil(key, record.look_at)) return true;
  const std::string message(PlanOf(pod).waiting_message);
  const TimePoint now = context_.simulation.Now();
  const bool is_first = record.pull_backoff.delay() == Duration::zero();
  const bool is_put_off = !is_first && !record.was_tried;
  const bool is_tried = record.pull_backoff.End(record.failed_at) <= now;
  if (is_tried) {
    record.pull_backoff.Next(now, now);
    record.failed_at = now;
  }
  record.was_tried = is_tried && !is_first;  // The result of the first pull is reported at once.
  record.look_at = now + context_.Draw(kPullRetry);
  WaitUntil(key, record.look_at);
  return ReportDown(key, record, [&](const Json& container) {
    return is_put_off ? PullPutOff(container, message) : WaitingState("ErrImagePull", message);
  });
}

bool Kubelet::Run(const ObjectKey& key, const Json& pod, Record& record) {
  const ContainerPlan plan = PlanOf(pod);
  const TimePoint now = context_.simulation.Now();
  if (!record.end_state.is_null()) return End(key, pod, record, record.end_state);
  const bool has_succeeded = plan.outcome == "succeed" || record.end_at <= now;
  if (has_succeeded || plan.outcome == "fail") {
    return End(key, pod, record,
               TerminatedState(has_succeeded ? 0 : plan.exit_code, record.running_since, context_.Now()));
  }
  if (record.is_down) return Restart(key, pod, record);
  if (plan.crashes > record.restarts) return Crash(key, pod, record);
  WaitUntil(key, record.ready_at > now ? std::min(record.end_at, record.ready_at) : record.end_at);
  return ReportRunning(key, pod, record);
}

bool Kubelet::Crash(const ObjectKey& key, const Json& pod, Record& record) {
  const Json state = TerminatedState(PlanOf(pod).exit_code, record.running_since, context_.Now());
  if (TextAt(pod, {"spec", "restartPolicy"}) == "Never") return End(key, pod, record, state);
  const TimePoint now = context_.simulation.Now();
  record.is_down = true;
  record.crashed_state = state;
  record.failed_at = now;
  const Duration left = record.crash_backoff.End(now) - now;
  record.was_tried = left == Duration::zero();
  if (record.was_tried) record.crash_backoff.Next(now, now);
  record.look_at = now + context_.Draw(record.was_tried ? context_.options.relist : StartRetry(left));
  WaitUntil(key, record.look_at);
  return ReportDown(key, record, [&](const Json&) { return state; });
}

// The next check, which may start the containers, first reports that a start was put off.
bool Kubelet::Restart(const ObjectKey& key, const Json& pod, Record& record) {
  if (!WaitUntil(key, record.look_at)) return true;
  record.last_state = record.crashed_state;
  if (record.was_tried) {
    record.is_down = false;
    ++record.restarts;
    Launch(key, pod, record);
    return ReportRunning(key, pod, record);
  }
  const TimePoint now = context_.simulation.Now();
  const Duration delay = record.crash_backoff.delay(), left = record.crash_backoff.End(record.failed_at) - now;
  record.was_tried = left <= Duration::zero();
  if (record.was_tried) record.crash_backoff.Next(record.failed_at, now);
  record.look_at = now + context_.Draw(record.was_tried ? context_.options.relist : StartRetry(left));
  WaitUntil(key, record.look_at);
  return ReportDown(key, record, [&](const Json& container) { return StartPutOff(container, pod, delay); });
}

// For containers that end by themselves the next check reports the phase; for stopped ones it is reported at once.
bool Kubelet::End(const ObjectKey& key, const Json& pod, Record& record, const Json& state) {
  const bool is_first = record.end_state.is_null();
  if (is_first) {
    record.end_state = state;
    record.look_at = context_.simulation.Now() + context_.Draw(context_.options.relist);
  }
  const bool is_known = WaitUntil(key, record.look_at) || IsBeingDeleted(pod);
  if (!is_known && !is_first) return true;
  return Report(key, record, [&](Json& object) {
    const bool is_success = IntAt(state, {"terminated", "exitCode"}) == 0;
    const std::string now = context_.Now();
    if (is_known) {
      object["status"]["phase"] = is_success ? "Succeeded" : "Failed";
      SetCondition(object, {"PodReadyToStartContainers", "False"}, now);
    }
    SetReady(object, false, is_success ? "PodCompleted" : "PodFailed", "", now);
    SetContainers(object, [&](const Json&) {
      return ContainerReport{.state = state, .last_state = record.last_state, .restarts = record.restarts};
    });
  });
}

bool Kubelet::ReportDown(const ObjectKey& key, Record& record,
                         const std::function<Json(const Json& container)>& state) {
  return Report(key, record, [&](Json& object) {
    // Missing volumes keep the whole pod from the network.
    const Json first = state(ItemsAt(object, {"spec", "containers"}).front());
    const bool has_sandbox = TextAt(first, {"waiting", "reason"}) != kCreating;
    if (record.ip.empty()) PutOnline(object, record, has_sandbox);
    SetReady(object, false, "ContainersNotReady", UnreadyMessage(object), context_.Now());
    SetContainers(object, [&](const Json& container) {
      return ContainerReport{.state = state(container), .last_state = record.last_state, .restarts = record.restarts};
    });
  });
}

bool Kubelet::ReportRunning(const ObjectKey& key, const Json& pod, Record& record) {
  const bool wants_ready = PlanOf(pod).wants_ready;
  const bool is_early = record.ready_at > context_.simulation.Now();
  return Report(key, record, [&](Json& object) {
    if (PhaseOf(object) != "Running") {
      object["status"]["phase"] = "Running";
      PutOnline(object, record, true);
    }
    SetReady(object, wants_ready && !is_early, "ContainersNotReady",
             wants_ready ? UnreadyMessage(object) : "annotation grus.test/ready is false", context_.Now());
    SetContainers(object, [&](const Json&) {
      return ContainerReport{.state = RunningState(record.running_since),
                             .last_state = record.last_state,
                             .restarts = record.restarts,
                             .has_started = !is_early || !HasStartupProbe(pod),
                             .is_ready = wants_ready && !is_early};
    });
  });
}

bool Kubelet::Report(const ObjectKey& key, const Record& record, const std::function<void(Json& pod)>& change) {
  return context_.Modify("pods", key, record.uid, "status", [&](Json& object) {
    const Json before = object["status"];
    change(object);
    return !(object["status"] == before);
  });
}

void Kubelet::PutOnline(Json& pod, Record& record, bool has_sandbox) {
  const std::string now = context_.Now();
  Json& status = pod["status"];
  if (!status.Find("startTime")) status["startTime"] = now;
  const FakeApiServer::ObjectPtr node = context_.server.Get("nodes", {"", std::string(NodeOf(pod))});
  for (const Json& address : node ? ItemsAt(*node, {"status", "addresses"}) : Json::Array()) {
    if (TextAt(address, {"type"}) != "InternalIP") continue;
    status["hostIP"] = TextAt(address, {"address"});
    status["hostIPs"] = Json::MakeArray({Json::MakeObject({{"ip", TextAt(address, {"address"})}})});
  }
  SetCondition(pod, {"PodReadyToStartContainers", has_sandbox ? "True" : "False"}, now);
  SetCondition(pod, {"Initialized", "True"}, now);
  if (!has_sandbox) return;
  if (record.ip.empty()) {
    const int n = last_ip_++;
    record.ip = "10." + std::to_string(64 + n / 65024 % 128) + "." + std::to_string(n / 254 % 256) + "." +
                std::to_string(n % 254 + 1);
  }
  pod["status"]["podIP"] = record.ip;
  pod["status"]["podIPs"] = Json::MakeArray({Json::MakeObject({{"ip", record.ip}})});
  SetInitContainers(pod, now);
}

}  // namespace kube::testing

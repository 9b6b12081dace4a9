// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/kubelet.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kManager = "kubelet";
constexpr int kTerminated = 143;  // By SIGTERM.

Json ContainerStatus(const Json& container, bool is_ready, bool has_started, Json state) {
  return Json::MakeObject({{"name", TextAt(container, {"name"})},
                           {"image", TextAt(container, {"image"})},
                           {"imageID", ""},
                           {"restartCount", 0},
                           {"ready", is_ready},
                           {"started", has_started},
                           {"state", std::move(state)}});
}

Json RunningState(std::string_view since) {
  return Json::MakeObject({{"running", Json::MakeObject({{"startedAt", since}})}});
}

Json TerminatedState(int exit_code, std::string_view since, std::string_view now) {
  return Json::MakeObject({{"terminated", Json::MakeObject({{"exitCode", exit_code},
                                                            {"reason", exit_code == 0 ? "Completed" : "Error"},
                                                            {"startedAt", since.empty() ? now : since},
                                                            {"finishedAt", now}})}});
}

void SetContainers(Json& pod, bool is_ready, const Json& state) {
  Json statuses = Json::MakeArray();
  for (const Json& container : ItemsAt(pod, {"spec", "containers"})) {
    statuses.Append(ContainerStatus(container, is_ready, state.Find("running") != nullptr, state));
  }
  pod["status"]["containerStatuses"] = std::move(statuses);
}

void SetInitContainers(Json& pod, std::string_view now) {
  if (ItemsAt(pod, {"spec", "initContainers"}).empty()) return;
  Json statuses = Json::MakeArray();
  for (const Json& container : ItemsAt(pod, {"spec", "initContainers"})) {
    const bool is_sidecar = TextAt(container, {"restartPolicy"}) == "Always";
    statuses.Append(
        ContainerStatus(container, true, is_sidecar, is_sidecar ? RunningState(now) : TerminatedState(0, now, now)));
  }
  pod["status"]["initContainerStatuses"] = std::move(statuses);
}

// True if anything changed.
bool SetReady(Json& pod, bool is_ready, std::string_view reason, std::string_view message, std::string_view now) {
  bool is_new = false;
  for (const std::string_view type : {"Ready", "ContainersReady"}) {
    is_new |=
        is_ready ? SetCondition(pod, {type, "True"}, now) : SetCondition(pod, {type, "False", reason, message}, now);
  }
  return is_new;
}

Duration GraceOf(const Json& pod) {
  return std::chrono::seconds(IntAt(pod, {"metadata", "deletionGracePeriodSeconds"},
                                    IntAt(pod, {"spec", "terminationGracePeriodSeconds"}, 30)));
}

}  // namespace

Kubelet::Kubelet(const ClusterContext& context)
    : context_(context),
      loop_(context, context.options.kubelet, [this](const ObjectKey& key) { return Reconcile(key); }) {}

void Kubelet::Observe(const ServerChange& change) {
  const Json& object = change.after ? *change.after : *change.before;
  if (change.resource == "nodes") {
    const std::string name(TextAt(object, {"metadata", "name"}));
    if (change.after) {
      // A node that comes back under its name finds the pods that are still bound to it.
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
    record = {.uid = std::string(UidOf(*pod)), .start_at = now + context_.Draw(context_.options.start), .ip = {}};
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
  const Duration grace = GraceOf(pod);
  const TimePoint latest = context_.simulation.Now() + grace;
  if (record.stop_at == TimePoint::max()) {
    record.stop_at = context_.simulation.Now() + context_.Draw(context_.options.stop);
  }
  record.stop_at = std::min(record.stop_at, latest);
  if (!WaitUntil(key, record.stop_at)) return true;
  // Who waits for the end of a deleted pod sees it before the pod is gone; then comes a pass that removes it.
  if (!HasEnded(pod)) return End(key, pod, kTerminated);
  // With no grace left it goes when its finalizers do.
  return IntAt(pod, {"metadata", "deletionGracePeriodSeconds"}, 1) == 0 || context_.DeleteObject("pods", pod, 0);
}

bool Kubelet::Start(const ObjectKey& key, const Json& pod, Record& record) {
  if (!WaitUntil(key, record.start_at)) return true;
  const std::string now = context_.Now();
  if (record.ip.empty()) {
    const int n = last_ip_++;
    record.ip = "10." + std::to_string(64 + n / 65024 % 128) + "." + std::to_string(n / 254 % 256) + "." +
                std::to_string(n % 254 + 1);
    const bool is_late = context_.simulation.OneIn(context_.options.late_ready_one_in);
    record.ready_at = context_.simulation.Now() + (is_late ? context_.Draw(context_.options.start) : Duration::zero());
  }
  int seconds = 0;
  const std::string_view text = AnnotationOf(pod, "grus.test/run-seconds");
  if (std::from_chars(text.data(), text.data() + text.size(), seconds).ec == std::errc()) {
    record.end_at = context_.simulation.Now() + std::chrono::seconds(seconds);
  }
  const bool wants_ready = AnnotationOf(pod, "grus.test/ready") != "false";
  const bool is_ready = wants_ready && record.ready_at <= context_.simulation.Now();
  const FakeApiServer::ObjectPtr node = context_.server.Get("nodes", {"", std::string(NodeOf(pod))});
  const bool is_written = context_.Modify("pods", key, record.uid, kManager, "status", [&](Json& object) {
    Json& status = object["status"];
    status["phase"] = "Running";
    status["startTime"] = now;
    for (const Json& address : node ? ItemsAt(*node, {"status", "addresses"}) : Json::Array()) {
      if (TextAt(address, {"type"}) != "InternalIP") continue;
      status["hostIP"] = TextAt(address, {"address"});
      status["hostIPs"] = Json::MakeArray({Json::MakeObject({{"ip", TextAt(address, {"address"})}})});
    }
    status["podIP"] = record.ip;
    status["podIPs"] = Json::MakeArray({Json::MakeObject({{"ip", record.ip}})});
    SetCondition(object, {"PodReadyToStartContainers", "True"}, now);
    SetCondition(object, {"Initialized", "True"}, now);
    SetReady(object, is_ready, "ContainersNotReady",
             wants_ready ? "containers with unready status" : "annotation grus.test/ready is false", now);
    SetInitContainers(object, now);
    SetContainers(object, is_ready, RunningState(now));
    return true;
  });
  WaitUntil(key, std::min(record.end_at, is_ready ? TimePoint::max() : record.ready_at));
  return is_written;
}

bool Kubelet::Run(const ObjectKey& key, const Json& pod, Record& record) {
  const std::string_view outcome = AnnotationOf(pod, "grus.test/outcome");
  if (outcome == "fail") return End(key, pod, 1);
  if (outcome == "succeed" || record.end_at <= context_.simulation.Now()) return End(key, pod, 0);
  const bool wants_ready = AnnotationOf(pod, "grus.test/ready") != "false";
  const bool is_early = record.ready_at > context_.simulation.Now();
  WaitUntil(key, is_early ? std::min(record.end_at, record.ready_at) : record.end_at);
  if (wants_ready && is_early) return true;
  if (wants_ready == HasTrueCondition(pod, "Ready")) return true;
  const std::string now = context_.Now();
  return context_.Modify("pods", key, record.uid, kManager, "status", [&](Json& object) {
    SetReady(object, wants_ready, "ContainersNotReady", "annotation grus.test/ready is false", now);
    const std::string since(TextAt(object, {"status", "startTime"}));
    SetContainers(object, wants_ready, RunningState(since));
    return true;
  });
}

bool Kubelet::End(const ObjectKey& key, const Json& pod, int exit_code) {
  const std::string now = context_.Now();
  return context_.Modify("pods", key, UidOf(pod), kManager, "status", [&](Json& object) {
    object["status"]["phase"] = exit_code == 0 ? "Succeeded" : "Failed";
    SetReady(object, false, exit_code == 0 ? "PodCompleted" : "PodFailed", "", now);
    const std::string since(TextAt(object, {"status", "startTime"}));
    SetContainers(object, false, TerminatedState(exit_code, since, now));
    return true;
  });
}

}  // namespace kube::testing

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/pod_containers.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "clientlib/testing/cluster/objects.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

std::optional<int> NumberIn(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<Duration> SecondsIn(std::string_view text) {
  const std::optional<int> number = NumberIn(text);
  return number ? std::optional<Duration>(std::chrono::seconds(*number)) : std::nullopt;
}

Json StatusOf(const Json& container, const ContainerReport& report) {
  Json status = Json::MakeObject({{"name", TextAt(container, {"name"})},
                                  {"image", TextAt(container, {"image"})},
                                  {"imageID", ""},
                                  {"restartCount", report.restarts},
                                  {"ready", report.is_ready},
                                  {"started", report.has_started},
                                  {"state", report.state}});
  if (!report.last_state.is_null()) status["lastState"] = report.last_state;
  return status;
}

// As Go writes it: "40s", "2m40s".
std::string GoText(Duration time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time).count();
  return (seconds < 60 ? "" : std::to_string(seconds / 60) + "m") + std::to_string(seconds % 60) + "s";
}

bool AnyContainer(const Json& pod, JsonPath has) {
  const Json::Array& containers = ItemsAt(pod, {"spec", "containers"});
  return std::any_of(containers.begin(), containers.end(), [&](const Json& item) { return item.At(has) != nullptr; });
}

}  // namespace

ContainerPlan PlanOf(const Json& pod) {
  ContainerPlan plan;
  plan.wants_ready = AnnotationOf(pod, "grus.test/ready") != "false";
  plan.outcome = AnnotationOf(pod, "grus.test/outcome");
  plan.exit_code = NumberIn(AnnotationOf(pod, "grus.test/exit-code")).value_or(1);
  plan.crashes = NumberIn(AnnotationOf(pod, "grus.test/crash")).value_or(0);
  plan.run_time = SecondsIn(AnnotationOf(pod, "grus.test/run-seconds"));
  plan.stop_time = SecondsIn(AnnotationOf(pod, "grus.test/stop-seconds"));
  const std::string_view waiting = AnnotationOf(pod, "grus.test/waiting");
  const std::size_t colon = std::min(waiting.find(": "), waiting.size());
  plan.waiting_reason = waiting.substr(0, colon);
  plan.waiting_message = waiting.substr(std::min(colon + 2, waiting.size()));
  return plan;
}

bool HasStartupProbe(const Json& pod) { return AnyContainer(pod, {"startupProbe"}); }
bool IsProbed(const Json& pod) { return HasStartupProbe(pod) || AnyContainer(pod, {"readinessProbe"}); }

Duration StopLimit(const Json& pod) {
  const auto grace = std::chrono::seconds(IntAt(pod, {"metadata", "deletionGracePeriodSeconds"},
                                                IntAt(pod, {"spec", "terminationGracePeriodSeconds"}, 30)));
  if (AnyContainer(pod, {"lifecycle", "preStop"})) return grace + 2s;
  return std::max<Duration>(grace, 2s);
}

std::string UnreadyMessage(const Json& pod) {
  std::string names;
  for (const Json& container : ItemsAt(pod, {"spec", "containers"})) {
    names += (names.empty() ? "" : " ") + std::string(TextAt(container, {"name"}));
  }
  return "containers with unready status: [" + names + "]";
}

Json RunningState(std::string_view since) {
  return Json::MakeObject({{"running", Json::MakeObject({{"startedAt", since}})}});
}

Json WaitingState(std::string_view reason, std::string_view message) {
  Json waiting = Json::MakeObject({{"reason", reason}});
  if (!message.empty()) waiting["message"] = message;
  return Json::MakeObject({{"waiting", std::move(waiting)}});
}

Json TerminatedState(int exit_code, std::string_view since, std::string_view now) {
  return Json::MakeObject({{"terminated", Json::MakeObject({{"exitCode", exit_code},
                                                            {"reason", exit_code == 0 ? "Completed" : "Error"},
                                                            {"startedAt", since},
                                                            {"finishedAt", now}})}});
}

Json LostState() {
  return Json::MakeObject(
      {{"terminated", Json::MakeObject({{"exitCode", 137},
                                        {"reason", "ContainerStatusUnknown"},
                                        {"message", "The container could not be located when the pod was terminated"},
                                        {"startedAt", Json()},
                                        {"finishedAt", Json()}})}});
}

Json PullPutOff(const Json& container, std::string_view message) {
  return WaitingState("ImagePullBackOff", "Back-off pulling image \"" + std::string(TextAt(container, {"image"})) +
                                              "\": ErrImagePull: " + std::string(message));
}

Json StartPutOff(const Json& container, const Json& pod, Duration delay) {
  const ObjectKey key = KeyOf(pod);
  return WaitingState("CrashLoopBackOff", "back-off " + GoText(delay) + " restarting failed container=" +
                                              std::string(TextAt(container, {"name"})) + " pod=" + key.name + "_" +
                                              key.ns + "(" + std::string(UidOf(pod)) + ")");
}

void SetContainers(Json& pod, const std::function<ContainerReport(const Json& container)>& report) {
  Json statuses = Json::MakeArray();
  for (const Json& container : ItemsAt(pod, {"spec", "containers"})) {
    statuses.Append(StatusOf(container, report(container)));
  }
  pod["status"]["containerStatuses"] = std::move(statuses);
}

void SetInitContainers(Json& pod, std::string_view now) {
  if (ItemsAt(pod, {"spec", "initContainers"}).empty() || pod.At({"status", "initContainerStatuses"})) return;
  Json statuses = Json::MakeArray();
  for (const Json& container : ItemsAt(pod, {"spec", "initContainers"})) {
    const bool is_sidecar = TextAt(container, {"restartPolicy"}) == "Always";
    statuses.Append(StatusOf(container, {.state = is_sidecar ? RunningState(now) : TerminatedState(0, now, now),
                                         .has_started = is_sidecar,
                                         .is_ready = true}));
  }
  pod["status"]["initContainerStatuses"] = std::move(statuses);
}

void SetReady(Json& pod, bool is_ready, std::string_view reason, std::string_view message, std::string_view now) {
  for (const std::string_view type : {"Ready", "ContainersReady"}) {
    if (is_ready) SetCondition(pod, {type, "True"}, now);
    else SetCondition(pod, {type, "False", reason, message}, now);
  }
}

bool RestartBackoff::HasExpired(TimePoint failed_at) const { return failed_at - updated_ > 10min; }

TimePoint RestartBackoff::End(TimePoint failed_at) const {
  return HasExpired(failed_at) ? failed_at : failed_at + delay_;
}

void RestartBackoff::Next(TimePoint failed_at, TimePoint now) {
  delay_ = delay_ == Duration::zero() || HasExpired(failed_at) ? 10s : std::min<Duration>(2 * delay_, 5min);
  updated_ = now;
}

}  // namespace kube::testing

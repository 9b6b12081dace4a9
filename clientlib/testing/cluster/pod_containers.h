// SPDX-License-Identifier: Apache-2.0
// The containers of a pod: what its annotations demand of them, and how a kubelet reports them in its status. All
// containers of a pod behave alike. Pure functions on values.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "clientlib/base/clock.h"
#include "clientlib/model/json.h"

namespace kube::testing {

// From the annotations (kubelet.h); views into the pod.
struct ContainerPlan {
  bool wants_ready = true;
  std::string_view outcome = {};  // "succeed", "fail" or empty.
  int exit_code = 1;              // Of a failure or a crash.
  int crashes = 0;
  std::string_view waiting_reason = {}, waiting_message = {};  // No reason: it does not wait.
  std::optional<Duration> run_time = {}, stop_time = {};
};
ContainerPlan PlanOf(const Json& pod);

bool HasStartupProbe(const Json& pod);
bool IsProbed(const Json& pod);  // A probe decides when it is ready.
// How long its containers may take to stop. A preStop hook may use up the grace; two more seconds follow then.
Duration StopLimit(const Json& pod);
// "containers with unready status: [main]"
std::string UnreadyMessage(const Json& pod);

// Members of a containerStatus.
struct ContainerReport {
  Json state;
  Json last_state = {};  // Null: none.
  int restarts = 0;
  bool has_started = false, is_ready = false;
};
Json RunningState(std::string_view since);
Json WaitingState(std::string_view reason, std::string_view message);
// The container's state while the next try is put off: a pull that failed with `message`, a start after a crash.
Json PullPutOff(const Json& container, std::string_view message);
Json StartPutOff(const Json& container, const Json& pod, Duration delay);
Json TerminatedState(int exit_code, std::string_view since, std::string_view now);
Json LostState();  // Of a container that never ran, when its pod has ended.

void SetContainers(Json& pod, const std::function<ContainerReport(const Json& container)>& report);
void SetInitContainers(Json& pod, std::string_view now);  // Reports them as completed.
// The conditions Ready and ContainersReady.
void SetReady(Json& pod, bool is_ready, std::string_view reason, std::string_view message, std::string_view now);

// The delays between tries to start a container or to pull its image: 10 s, doubling to 5 min; starts over after 10
// min.
class RestartBackoff {
 public:
  TimePoint End(TimePoint failed_at) const;  // When a try that failed then may be repeated.
  void Next(TimePoint failed_at, TimePoint now);
  Duration delay() const { return delay_; }

 private:
  bool HasExpired(TimePoint failed_at) const;

  Duration delay_{};  // Zero: it never failed.
  TimePoint updated_{};
};

}  // namespace kube::testing

// SPDX-License-Identifier: Apache-2.0
// Kubernetes Events (events.k8s.io/v1) about objects, for `kubectl get events` and `kubectl describe`.
//
// Recording never blocks: an event goes to a bounded queue and a thread of the recorder writes it; when the queue is
// full the event is dropped and counted. Equal events (same object, type, reason, action and note) within six minutes
// become one series (rule V1): its first repetition is written at once, later ones are counted and written together
// once a minute. Beyond 4096 series the least recent one is forgotten. An object may begin 25 series at once, then one
// every five minutes (V2): more are dropped and counted. A write that fails for a transient reason is tried 12 times,
// with about 95 s of waits in all; then the event is dropped and counted too. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "clientlib/base/log.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/metrics.h"

namespace kube {

enum class EventType { kNormal, kWarning };

struct EventRecorderOptions {
  std::string controller;  // reportingController: "ai.centauruscloud.io/grus-manager".
  std::string instance;    // reportingInstance: the pod's name.
  std::size_t queue_limit = 1000;
};

class EventRecorder {
 public:
  // Drops are counted in `metrics`, if given:
  // event_recorder_dropped_total{reason="queue_full"|"write_failed"|"object_limit"|"namespace_limit"}.
  EventRecorder(Client& client, const Clock& clock, const Log& log, EventRecorderOptions options,
                Registry* metrics = nullptr);
  ~EventRecorder();  // Writes queued events for at most two seconds, then stops.
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // About `regarding`, an object of `kind`. `reason` is PascalCase (<= 128 bytes), `action` what was done
  // ("ScaleWorkers", <= 128 bytes), `note` a sentence. Longer texts are cut, notes at 1 kB. REQUIRES: neither
  // `reason` nor `action` is empty.
  void Record(EventType type, const Kind& kind, const ObjectMeta& regarding, std::string_view reason,
              std::string_view action, std::string_view note);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube

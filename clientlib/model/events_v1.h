// SPDX-License-Identifier: Apache-2.0
// Event of events.k8s.io: what happened to an object, for people. Values.
#pragma once

#include <cstdint>
#include <optional>

#include "clientlib/model/core_v1.h"
#include "clientlib/model/kind.h"

namespace kube {

struct EventSeries {
  std::int32_t count = 0;
  MicroTime last_observed_time;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const EventSeries&, const EventSeries&) = default;
};

struct Event : Object {
  MicroTime event_time;
  std::optional<EventSeries> series;
  CompactString reporting_controller, reporting_instance;
  CompactString action, reason, note, type;  // `type` is "Normal" or "Warning".
  ObjectReference regarding;
  std::optional<ObjectReference> related;
  std::optional<Time> deprecated_last_timestamp;  // By recorders of the older API, as in Kubernetes' own controllers.
  static const Kind& ResourceKind();
};

}  // namespace kube

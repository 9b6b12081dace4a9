// SPDX-License-Identifier: Apache-2.0
// The events of a plan. Report them after the writes of the pass: a pass that fails is repeated, and so would they be.
#pragma once

#include <string>
#include <vector>

#include "clientlib/base/log.h"
#include "clientlib/model/kind.h"
#include "clientlib/runtime/event_recorder.h"

namespace grus {

struct PlannedEvent {
  kube::EventType type = kube::EventType::kNormal;
  std::string reason, action, note;
};

// Records and logs the events; `name` is the log field for the key of the object.
inline void Tell(const std::vector<PlannedEvent>& events, kube::EventRecorder& recorder, const kube::Log& log,
                 const kube::Kind& kind, const kube::ObjectMeta& object, const char* name) {
  for (const PlannedEvent& event : events) {
    log.Info(event.note, {{name, object.Key().ToString()}, {"reason", event.reason}});
    recorder.Record(event.type, kind, object, event.reason, event.action, event.note);
  }
}

}  // namespace grus

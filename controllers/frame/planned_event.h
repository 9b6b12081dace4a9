// SPDX-License-Identifier: Apache-2.0
// What a plan has to tell of its object, once its status is written.
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

// As events of the object, and in the log, where it is called `name`.
inline void Tell(const std::vector<PlannedEvent>& events, kube::EventRecorder& recorder, const kube::Log& log,
                 const kube::Kind& kind, const kube::ObjectMeta& object, const char* name) {
  for (const PlannedEvent& event : events) {
    log.Info(event.note, {{name, object.Key().ToString()}, {"reason", event.reason}});
    recorder.Record(event.type, kind, object, event.reason, event.action, event.note);
  }
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Why a job is as it is: reasons of the Ready condition. A closed list.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "clientlib/runtime/event_recorder.h"

namespace grus {

enum class Reason {
  kWorkersStarting,  // Workers exist; not enough are ready to start the launcher.
  kLauncherStarting,
  kTraining,
  kNoOutput,         // The launcher runs and has printed nothing for long.
  kBelowMinimum,     // Trains, on fewer workers than the minimum.
  kPodsBroken,       // Workers or the launcher cannot start.
  kNoWorkersWanted,  // Scaled to none.
  kWaitingForRoom,   // The minimum does not fit now.
  kCannotFit,        // Nor into an empty cluster.
  kWaitingForQueue,  // Its queue would not start it even if GPUs were idle.
  kWaitingForQuota,  // The quotas of the namespace do not admit it.
  kGatedByOthers,    // Other controllers keep its workers from starting.
  kSuspended,
  kSucceeded,
  kLauncherFailed,
  kDeadlineExceeded,
  kNameTaken,        // A child's name belongs to somebody else.
  kTemplateRefused,  // The API server refused a child.
  kNotPermitted,     // grus itself lacks a permission.
  kPreempting,       // It goes on until it must give its GPUs to another job.
};
std::string_view ToString(Reason reason);

struct ReasonEvent {
  kube::EventType type;
  std::string action;
};
// Recorded when a job gets this reason, with its message; nullopt: none, or by those who set it.
std::optional<ReasonEvent> EventOf(std::string_view reason);

}  // namespace grus

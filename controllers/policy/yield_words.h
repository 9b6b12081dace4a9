// SPDX-License-Identifier: Apache-2.0
// What a job or gang that yields tells its user and its pods. Pure.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/base/error.h"
#include "clientlib/model/time.h"
#include "controllers/queues/queue_setup.h"

namespace grus {

// On pods that will be deleted so that others get their GPUs: when, in RFC 3339. A training can read it from a
// downward-API volume, and save its state.
inline constexpr char kPreemptionDeadlineAnnotation[] = "scheduling.ai.centauruscloud.io/preemption-deadline";

// "gives its 8 GPUs to team-a/bert, whose queue is below its guarantee"; `verb`: "gives", `what`: "its 8 GPUs".
std::string YieldText(std::string_view verb, std::string_view what, const YieldNotice& notice);
// When what yields as a whole is to end.
kube::Time DeadlineOf(const YieldNotice& notice);
// Zero or less: it is over.
kube::Duration TimeLeft(const YieldNotice& notice, const kube::Time& now);

}  // namespace grus

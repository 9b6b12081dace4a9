// SPDX-License-Identifier: Apache-2.0
// Why a pod does not run, mostly in the kubelet's words: pure.
//
// The words stay the same from one try of the kubelet to the next, so that they can stand in a status.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "clientlib/base/error.h"
#include "clientlib/model/pod.h"

namespace grus {

// "container worker cannot pull image "x": not found"; empty: nothing is known to be wrong.
std::string TroubleOf(const kube::Pod& pod);

// How a container of the pod ended with an error, or was last restarted: "exit code 137 (OOMKilled)", with the end of
// its log if the kubelet kept it; empty: none did.
std::string ErrorEndOf(const kube::Pod& pod);

// The scheduling gate of another controller that keeps it from starting, of several the last; empty: none.
std::string ForeignGateOf(const kube::Pod& pod);

// The scheduler that the pod waits for and that has said nothing of it; empty: there is none.
std::string SilentSchedulerOf(const kube::Pod& pod);
// How long a scheduler may say nothing before a user hears of it.
inline constexpr kube::Duration kSchedulerSilence = std::chrono::seconds(30);
// "scheduler "x" has said nothing of pod a-0: does it run?"
std::string SilenceText(std::string_view scheduler, std::string_view pod);

}  // namespace grus

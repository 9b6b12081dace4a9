// SPDX-License-Identifier: Apache-2.0
// What to read of a container's log (GET pods/NAME/log). A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clientlib/base/error.h"
#include "clientlib/model/time.h"

namespace kube {

// The `{}` allow designated initialisers that name only some fields.
struct PodLogOptions {
  std::string container{};  // Empty: the pod's only one.
  bool follow = false;      // The stream goes on until the container ends.
  bool timestamps = false;  // Each line begins with its time and a space: "2026-01-02T03:04:05.678901234Z text".
  // Lines from the beginning of that second on: the API knows no fractions.
  std::optional<Time> since{};
  std::optional<std::int64_t> tail_lines{};   // Only this many of the last lines, counted before `since` is applied.
  std::optional<std::int64_t> limit_bytes{};  // At least 1. The stream ends there, even within a line.
  // Until the headers of the answer have come. With `follow` the kubelet sends them with the first line, so a quiet
  // container looks like a server that does not answer.
  Duration timeout = std::chrono::seconds(30);
};

// True if `error` of Client::PodLog() says that the container has not started: the pod has no node yet, or its
// kubelet waits for an image, a volume or an init container.
bool IsWaitingToStart(const Error& error);

}  // namespace kube

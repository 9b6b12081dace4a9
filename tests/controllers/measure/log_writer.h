// SPDX-License-Identifier: Apache-2.0
// Writes the log of a pod as the API server streams it, on a clock of its own.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"
#include "controllers/measure/log_lines.h"

namespace grus {

struct LogWriter {
  WallTime now{std::chrono::seconds(1767323045)};
  std::string bytes;

  void Wait(double seconds) {
    now += std::chrono::duration_cast<kube::Duration>(std::chrono::duration<double>(seconds));
  }
  void Line(std::string_view text) {
    std::string position = ToText(LogPosition{now, 0});  // The time as the API server writes it, and a number.
    position.resize(position.find(' ') + 1);
    bytes.append(position).append(text).append("\n");
  }
};

}  // namespace grus

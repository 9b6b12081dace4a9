// SPDX-License-Identifier: Apache-2.0
// Writes the log of a pod as the API server streams it, on a clock of its own.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/base/clock.h"
#include "clientlib/model/time.h"
#include "controllers/measure/reading.h"

namespace grus {

struct LogWriter {
  WallTime now{std::chrono::seconds(1767323045)};
  std::string bytes;

  void Wait(double seconds) {
    now += std::chrono::duration_cast<kube::Duration>(std::chrono::duration<double>(seconds));
  }
  void Line(std::string_view text) {
    const auto second = std::chrono::floor<std::chrono::seconds>(now);
    std::string time = kube::ToText(kube::Time{second});
    const std::string fraction = std::to_string(1'000'000'000 + std::chrono::nanoseconds(now - second).count());
    time.replace(time.size() - 1, 1, "." + fraction.substr(1) + "Z ");
    bytes.append(time).append(text).append("\n");
  }
};

}  // namespace grus

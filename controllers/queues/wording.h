// SPDX-License-Identifier: Apache-2.0
// Words that messages to users share.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace grus {

// "1 member", "2 members".
inline std::string Count(std::int64_t n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

// Thousandths of GPUs: "8", "2.5", "0.333".
inline std::string GpuNumber(std::int64_t milli) {
  std::string text = (milli < 0 ? "-" : "") + std::to_string(std::abs(milli) / 1000);
  if (milli % 1000 == 0) return text;
  text += "." + std::to_string(1000 + std::abs(milli) % 1000).substr(1);
  return text.substr(0, text.find_last_not_of('0') + 1);
}

// "1 GPU", "2.5 GPUs".
inline std::string GpuCount(std::int64_t milli) { return GpuNumber(milli) + (milli == 1000 ? " GPU" : " GPUs"); }

}  // namespace grus

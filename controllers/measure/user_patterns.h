// SPDX-License-Identifier: Apache-2.0
// Patterns of the user that say where a number stands in a log.
//
// A pattern is a regular expression of RE2, which takes time linear in the line whatever the pattern is; its
// first group is the number. Each pattern is searched for in each line, by itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "controllers/measure/reading.h"

namespace re2 {
class RE2;
}

namespace grus {

struct SpeedPattern {
  std::string name;
  std::string regex;
  Measure measure = Measure::kStep;  // kStep, kSamplesPerSecond, kStepSeconds or kEpoch.
  friend bool operator==(const SpeedPattern&, const SpeedPattern&) = default;
};

class UserPatterns {
 public:
  // Errors: kInvalidArgument; the message names the pattern, the fault and its place.
  static kube::Result<UserPatterns> Make(const std::vector<SpeedPattern>& patterns);

  UserPatterns();
  ~UserPatterns();
  UserPatterns(UserPatterns&&) noexcept;
  UserPatterns& operator=(UserPatterns&&) noexcept;

  bool empty() const { return compiled_.empty(); }

  // Adds what the patterns find in the line to `readings`. A group that holds no number is counted.
  void Read(std::string_view text, LineReadings& readings, std::int64_t& not_numbers) const;

 private:
  struct Compiled {
    std::unique_ptr<re2::RE2> regex;
    Measure measure;
    std::uint32_t series;
  };
  std::vector<Compiled> compiled_;
};

}  // namespace grus

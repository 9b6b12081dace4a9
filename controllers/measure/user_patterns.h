// SPDX-License-Identifier: Apache-2.0
// Patterns of the user that say where a number stands in a log.
//
// A pattern is a regular expression of RE2, which takes time linear in the line whatever the pattern is; its
// first group is the number. Each pattern is searched for in each line, by itself.
//
// Pure; thread-safe where const.
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
  Measure measure = Measure::kStep;  // All but kSampleCount.
  Scope scope = Scope::kJob;         // Of a rate or a batch.
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

  // A regular expression that finds the number that begins at `at` of such a line, for a person to use.
  static std::string RegexFor(std::string_view line, std::size_t at);

  // Adds what the patterns find in the line to `readings`. A group that holds no number is counted.
  void Read(std::string_view text, LineReadings& readings, std::int64_t& not_numbers) const;

 private:
  struct Compiled {
    std::unique_ptr<re2::RE2> regex;
    Measure measure;
    Scope scope;
    std::uint32_t series;
  };
  std::vector<Compiled> compiled_;
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// SpeedReader of a log that anybody may have written: the size of the chunks in the first byte, then the log.
// Rules: the size of the chunks makes no difference; a speed is a positive number; what was read is not read again.
#include <cmath>
#include <string>

#include "controllers/measure/speed_reader.h"
#include "tests/fuzz/check.h"

namespace {

grus::SpeedReader Reader() {
  grus::SpeedReaderOptions options;
  options.patterns = {{"took", "took (\\S+)", grus::Measure::kStepSeconds}, {"at", "at (\\d*)", grus::Measure::kStep}};
  options.has_auto = true;
  return *grus::SpeedReader::Make(options);
}

void RequireSpeed(const std::optional<grus::MeasuredSpeed>& speed) {
  fuzz::Require(!speed || speed->value() > 0, "a speed is positive");
  fuzz::Require(!speed || speed->steady.half_width_seconds >= 0, "an interval has a width");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t chunk = std::size_t{data[0]} + 1;
  const std::string_view log = fuzz::Text(data + 1, size - 1);
  grus::SpeedReader whole = Reader(), parts = Reader();
  whole.Add(log);
  for (std::size_t at = 0; at < log.size(); at += chunk) parts.Add(log.substr(at, chunk));

  const grus::SpeedObservation seen = whole.Observe({});
  RequireSpeed(seen.step);
  RequireSpeed(seen.throughput);
  RequireSpeed(seen.gpu_throughput);
  RequireSpeed(seen.token_throughput);
  RequireSpeed(seen.epoch);
  const grus::SpeedObservation again = parts.Observe({});
  fuzz::Require(seen.counts.matched_lines == again.counts.matched_lines, "chunks make no difference to what matches");
  fuzz::Require(
      seen.step.has_value() == again.step.has_value() && (!seen.step || seen.step->value() == again.step->value()),
      "chunks make no difference to the speed");
  return 0;
}

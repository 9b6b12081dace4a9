// SPDX-License-Identifier: Apache-2.0
// Model files of who disturbs whom. Rules: what is read can be written, and reads the same; its speeds can have been
// measured.
#include "controllers/interference/model_file.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = grus::ReadModelFile(fuzz::Text(data, size), "model.json");
  if (!model) return 0;
  for (const grus::CoRunSample& sample : model->samples()) {
    fuzz::Require(!grus::WhyNoSpeed(sample.speed), "speeds can have been measured");
    fuzz::Require(!grus::WhyNoFeatures(sample.job.solo), "and features");
  }
  const std::string written = grus::WriteModelFile(*model);
  const auto again = grus::ReadModelFile(written, "again.json");
  fuzz::Require(again.ok(), "what was written can be read");
  fuzz::Require(grus::WriteModelFile(*again) == written, "and is the same");
  return 0;
}

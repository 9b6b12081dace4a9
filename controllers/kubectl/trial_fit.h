// SPDX-License-Identifier: Apache-2.0
// kubectl grus trial fit: predicts step times at sizes that were not tried, from a file of measurements.
//
// Measurements have the columns num_nodes, num_replicas, local_bsz (samples per replica and step) and step_time (s);
// wanted sizes have the first three. Further columns are ignored. The answer repeats the wanted sizes in their order,
// with step_time, low and high (s, the 90 % band) and source: Measured, Interpolated, Extrapolated or Unknown. For
// Unknown sizes too, step_time is the model's guess: whoever checks the model needs every number.
//
// Pure: texts in, text out.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/base/result.h"
#include "controllers/throughput/throughput_fit.h"

namespace grus {

struct CsvText {
  std::string name;  // Of the file, for messages.
  std::string text;
};

// Error kDecode: names file, line, column and remedy.
kube::Result<std::string> PredictFromCsv(const CsvText& measurements, const CsvText& wanted, const FitOptions& options);

}  // namespace grus

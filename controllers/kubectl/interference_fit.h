// SPDX-License-Identifier: Apache-2.0
// kubectl grus interference fit: predicts how fast jobs are beside others on one GPU, from a file of co-runs.
//
// Both files have the columns job and with_job, the co-runs also speed (as a share of the solo speed). Features are
// optional: gpu_utilization, memory_bandwidth, memory, step_time and batch_size of the job, with_gpu_utilization and so
// on of the other; so are gpu_type and count. Some other usual names are understood (docs/interference.md). An empty
// field is not known. Units are those that a column's name ends with; of columns without one, the same in both files,
// as only how features differ counts. A job's name and batch size together tell it from others. The answer has the
// columns speed, low and high (the 90 % interval), a row for each row of the question, in its order.
//
// Pure: texts in, text out.
#pragma once

#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "controllers/interference/interference_model.h"
#include "controllers/kubectl/trial_fit.h"

namespace grus {

struct CoRunTable {
  std::vector<CoRunSample> samples;  // Merged.
  std::vector<std::string> notes;    // What was left out or is not used, for the user.
};

// Errors kDecode and kTooLarge: name file, line, column and remedy.
kube::Result<CoRunTable> ReadCoRuns(const CsvText& csv);

struct PairTable {
  std::vector<PairQuestion> questions;
  std::vector<std::string> notes;
};
kube::Result<PairTable> ReadPairs(const CsvText& csv);

// What the model does not know of questions from the file `name`, or takes from elsewhere, for the user.
std::vector<std::string> NotesOn(const std::string& name, const InterferenceModel& model,
                                 const std::vector<PairQuestion>& questions);

std::string SpeedsAsCsv(const std::vector<SpeedShare>& speeds);

}  // namespace grus

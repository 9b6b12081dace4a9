// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/interference_command.h"

#include <fstream>
#include <ostream>

#include "clientlib/base/printable.h"
#include "controllers/interference/model_file.h"
#include "controllers/kubectl/command_answer.h"
#include "controllers/kubectl/interference_fit.h"
#include "controllers/kubectl/text_file.h"

namespace grus {
namespace {

namespace po = boost::program_options;

void SayNotes(std::ostream& error, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) error << "kubectl grus: " << kube::Printable(note) << "\n";
}

kube::Result<InterferenceModel> ModelOf(const po::variables_map& values, std::ostream& error) {
  const bool is_model = values.count("model") > 0;
  const kube::Result<CsvText> file = ReadCsvFile(values[is_model ? "model" : "points"].as<std::string>());
  if (!file) return file.error();
  if (is_model) return ReadModelFile(file->text, file->name);
  kube::Result<CoRunTable> co_runs = ReadCoRuns(*file);
  if (!co_runs) return std::move(co_runs).error();
  SayNotes(error, co_runs->notes);
  return InterferenceModel::Fit(std::move(co_runs->samples));
}

kube::Status Save(const InterferenceModel& model, const std::string& path) {
  const std::string text = WriteModelFile(model);
  if (text.size() > kMaxModelBytes) {
    return kube::Error(kube::ErrorCode::kTooLarge,
                       path + ": not written: " + std::to_string(text.size()) + " bytes, of which --model reads " +
                           std::to_string(kMaxModelBytes >> 20) + " MiB; give jobs shorter names");
  }
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) return kube::Error(kube::ErrorCode::kUnavailable, path + ": cannot be written");
  return {};
}

// Empty if there is no --predict.
kube::Result<PairTable> WantedPairs(const po::variables_map& values) {
  if (values.count("predict") == 0) return PairTable{};
  const kube::Result<CsvText> file = ReadCsvFile(values["predict"].as<std::string>());
  if (!file) return file.error();
  return ReadPairs(*file);
}

}  // namespace

int InterferenceFit(const po::variables_map& values, std::ostream& out, std::ostream& error) {
  if (values.count("points") + values.count("model") != 1 || values.count("name") > 0) {
    return SayWrongUse(error, "interference fit needs one of: --points FILE, --model FILE");
  }
  if (values.count("predict") + values.count("save") == 0) {
    return SayWrongUse(error, "interference fit needs --predict FILE or --save FILE");
  }
  // First, as a fit takes its time.
  const kube::Result<PairTable> pairs = WantedPairs(values);
  if (!pairs) return SayFailed(error, pairs.error());
  const kube::Result<InterferenceModel> model = ModelOf(values, error);
  if (!model) return SayFailed(error, model.error());
  if (values.count("save") > 0) {
    if (auto saved = Save(*model, values["save"].as<std::string>()); !saved) return SayFailed(error, saved.error());
  }
  if (values.count("predict") == 0) return 0;
  SayNotes(error, pairs->notes);
  SayNotes(error, NotesOn(values["predict"].as<std::string>(), *model, pairs->questions));
  return Finish(out, error, SpeedsAsCsv(model->Predict(pairs->questions)));
}

po::options_description InterferenceFitOptions() {
  po::options_description description("Options", 100);
  description.add_options()(
      "points", po::value<std::string>()->value_name("FILE"),
      "CSV of co-runs: job, with_job, speed (a share of solo); features of both, gpu_type and count if known.")(
      "model", po::value<std::string>()->value_name("FILE"), "A model that --save wrote, in place of --points.")(
      "predict", po::value<std::string>()->value_name("FILE"), "CSV of pairs: the same columns without speed.")(
      "save", po::value<std::string>()->value_name("FILE"), "Write the model, as JSON.");
  return description;
}

}  // namespace grus

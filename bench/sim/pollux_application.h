// SPDX-License-Identifier: Apache-2.0
// What was measured of one application of the Pollux traces: the time of a training step by placement and batch size,
// and how much a step is worth by batch size and epoch. The rules are those of AdaptDL's simulator
// (https://github.com/petuum/adaptdl, branch osdi21-artifact, simulator/applications.py), but for placements on five
// nodes and more: see StepTimeOf().
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/base/result.h"

namespace grus {

// What the experiment fixes beside the measurements.
struct ApplicationRules {
  std::string_view name;
  int epochs = 0;
  int max_gpus = 0;
  int max_local_batch = 0;  // 0: the largest that was measured.
};

// bert, cifar10, ncf, imagenet, deepspeech2, yolov3.
std::span<const ApplicationRules> KnownApplications();

struct StepTime {
  double step_s = 0;
  double sync_s = 0;  // The part of it in which gradients are exchanged.
};

// Of the gradients in an epoch: the square of their mean, and their variance.
struct GradientStatistics {
  double square = 0;
  double variance = 0;
};

class Application {
 public:
  // Reads placements.csv, scalability.csv and the files validation-BATCH.csv of `folder`.
  static kube::Result<Application> Load(const std::filesystem::path& folder, const ApplicationRules& rules);

  const std::string& name() const { return name_; }
  int epochs() const { return epochs_; }
  int max_gpus() const { return max_gpus_; }
  int initial_batch() const { return validations_.begin()->first; }
  int max_batch() const { return validations_.rbegin()->first; }
  int min_local_batch() const { return min_local_batch_; }
  int max_local_batch() const { return max_local_batch_; }

  // `gpus_by_node`: GPUs on each node, none of them 0; the same in any rotation. Up to four nodes: as measured. More:
  // between the node counts that were measured, along the same number of GPUs a node; then between local batch sizes.
  StepTime StepTimeOf(std::span<const int> gpus_by_node, double local_batch) const;

  // REQUIRES: 0 <= epoch < epochs(); initial_batch() <= batch <= max_batch().
  GradientStatistics GradientsIn(int epoch, double batch) const;

  // The progress at which `epoch` ends, in steps of the initial batch size. REQUIRES: 0 <= epoch < epochs().
  double EndOf(int epoch) const { return epoch_ends_[static_cast<std::size_t>(epoch)]; }

 private:
  struct ValidatedEpoch {
    double progress = 0, square = 0, variance = 0;
  };
  using ByLocalBatch = std::map<double, StepTime>;

  static StepTime At(const ByLocalBatch& times, double local_batch);
  StepTime At(const std::map<int, ByLocalBatch>& by_gpus, double gpus, double local_batch) const;
  kube::Status ReadStepTimes(const std::filesystem::path& folder);
  static kube::Result<std::vector<ValidatedEpoch>> ReadEpochs(const std::string& path);
  kube::Status ReadValidations(const std::filesystem::path& folder);

  std::string name_;
  int epochs_ = 0, max_gpus_ = 0, min_local_batch_ = 0, max_local_batch_ = 0;
  std::map<std::string, ByLocalBatch> by_placement_;          // "44" is two nodes of four GPUs.
  std::map<int, std::map<int, ByLocalBatch>> by_nodes_gpus_;  // Means over the placements of that many.
  std::map<int, std::vector<ValidatedEpoch>> validations_;    // By batch size.
  std::vector<double> epoch_ends_;
};

}  // namespace grus

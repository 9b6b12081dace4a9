// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux_job.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace grus {
namespace {

int DivideUp(int a, int b) { return (a + b - 1) / b; }

}  // namespace

ReplayJob::ReplayJob(Submission submission, const Application& application)
    : submission_(std::move(submission)), application_(&application) {}

int ReplayJob::max_gpus() const {
  return std::clamp(submission_.batch / application_->min_local_batch(), 1, application_->max_gpus());
}

ReplayJob::BatchSplit ReplayJob::SplitOver(int gpus) const {
  const int local = DivideUp(submission_.batch, gpus);
  BatchSplit split;
  split.accumulations = DivideUp(local, application_->max_local_batch()) - 1;
  // One GPU needs two small steps to tell the variance of its gradients.
  if (gpus == 1 && submission_.batch > application_->initial_batch()) {
    split.accumulations = std::max(1, split.accumulations);
  }
  const int parts = split.accumulations + 1;
  split.local = std::min(DivideUp(local, parts), application_->max_batch() / (gpus * parts));
  split.batch = gpus * parts * split.local;
  return split;
}

double ReplayJob::SecondsOfStep(const std::vector<int>& gpus_by_node, const BatchSplit& split) const {
  const StepTime time = application_->StepTimeOf(gpus_by_node, split.local);
  return time.step_s + split.accumulations * (time.step_s - time.sync_s);
}

double ReplayJob::SpeedOn(const std::vector<int>& gpus_by_node) const {
  int gpus = 0;
  for (const int on_node : gpus_by_node) gpus += on_node;
  const BatchSplit split = SplitOver(gpus);
  return split.batch / SecondsOfStep(gpus_by_node, split);
}

void ReplayJob::Move(GpuNodes gpu_nodes) {
  gpu_nodes_ = std::move(gpu_nodes);
  gpus_by_node_.clear();
  for (std::size_t i = 0; i < gpu_nodes_.size(); ++i) {
    if (i == 0 || gpu_nodes_[i] != gpu_nodes_[i - 1]) gpus_by_node_.push_back(0);
    ++gpus_by_node_.back();
  }
  if (gpu_nodes_.empty()) return;
  split_ = SplitOver(static_cast<int>(gpu_nodes_.size()));
  step_s_ = SecondsOfStep(gpus_by_node_, split_);
  standstill_s_ = kRestartSeconds;
  ++starts_;
}

void ReplayJob::Train(double now_s, double seconds) {
  if (gpu_nodes_.empty() || completed_s_) return;
  const auto gpus = static_cast<double>(gpu_nodes_.size());
  const auto pass = [&](double passed) {
    now_s += passed;
    seconds -= passed;
    attained_gpu_s_ += passed * gpus;
  };
  const double standstill = std::min(standstill_s_, seconds);
  standstill_s_ -= standstill;
  pass(standstill);

  const double scale = static_cast<double>(split_.batch) / application_->initial_batch();
  while (seconds > 0 && !completed_s_) {
    const GradientStatistics gradients = application_->GradientsIn(epoch_, split_.batch);
    const double gain = (gradients.variance + gradients.square) / (gradients.variance / scale + gradients.square);
    const double progress_per_s = gain / step_s_;
    const double end = application_->EndOf(epoch_);
    if (progress_ + progress_per_s * seconds < end) {
      progress_ += progress_per_s * seconds;
      pass(seconds);
    } else {
      pass(std::nearbyint((end - progress_) / progress_per_s));  // Epochs end at whole seconds.
      progress_ = end;
      if (++epoch_ == application_->epochs()) completed_s_ = now_s;
    }
  }
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux_job.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace grus {
namespace {

constexpr int kBatchSizesTried = 50;  // As AdaptDL does, at equal ratios.

int DivideUp(int a, int b) { return (a + b - 1) / b; }

}  // namespace

ReplayJob::ReplayJob(Submission submission, const Application& application, BatchSize batch_size)
    : submission_(std::move(submission)), application_(&application), batch_size_(batch_size) {}

void ReplayJob::Resubmit(std::string name, double time_s) {
  submission_.name = std::move(name);
  submission_.time_s = time_s;
}

int ReplayJob::max_gpus() const {
  const int batch = batch_size_ == BatchSize::kAdaptive ? application_->max_batch() : submission_.batch;
  return std::clamp(batch / application_->min_local_batch(), 1, application_->max_gpus());
}

ReplayJob::BatchSplit ReplayJob::SplitOver(int gpus, int batch) const {
  const int local = DivideUp(batch, gpus);
  BatchSplit split;
  split.accumulations = DivideUp(local, application_->max_local_batch()) - 1;
  // One GPU needs two small steps to tell the variance of its gradients.
  if (gpus == 1 && batch > application_->initial_batch()) {
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

double ReplayJob::GoodputOn(const std::vector<int>& gpus_by_node, const BatchSplit& split) const {
  const GradientStatistics gradients = application_->GradientsIn(epoch_, split.batch);
  const double scale = static_cast<double>(split.batch) / application_->initial_batch();
  const double gain = (gradients.variance + gradients.square) / (gradients.variance / scale + gradients.square);
  return gain / SecondsOfStep(gpus_by_node, split);
}

ReplayJob::BatchSplit ReplayJob::SplitOn(const std::vector<int>& gpus_by_node) const {
  const int gpus = std::accumulate(gpus_by_node.begin(), gpus_by_node.end(), 0);
  if (batch_size_ == BatchSize::kAsSubmitted) return SplitOver(gpus, submission_.batch);
  const double least = std::max(application_->initial_batch(), application_->min_local_batch() * gpus);
  const double most = application_->max_batch();
  BatchSplit best;
  double best_goodput = 0;
  for (int i = 0; i < kBatchSizesTried; ++i) {
    const double batch = least * std::pow(most / least, i / (kBatchSizesTried - 1.0));
    const BatchSplit split = SplitOver(gpus, static_cast<int>(batch));
    const double goodput = GoodputOn(gpus_by_node, split);
    if (goodput <= best_goodput) continue;
    best = split;
    best_goodput = goodput;
  }
  return best;
}

double ReplayJob::SpeedOn(const std::vector<int>& gpus_by_node) const {
  const BatchSplit split = SplitOn(gpus_by_node);
  if (batch_size_ == BatchSize::kAdaptive) return GoodputOn(gpus_by_node, split);
  return split.batch / SecondsOfStep(gpus_by_node, split);
}

void ReplayJob::Move(GpuNodes gpu_nodes, const Standstills& standstills) {
  gpu_nodes_ = std::move(gpu_nodes);
  gpus_by_node_.clear();
  for (std::size_t i = 0; i < gpu_nodes_.size(); ++i) {
    if (i == 0 || gpu_nodes_[i] != gpu_nodes_[i - 1]) gpus_by_node_.push_back(0);
    ++gpus_by_node_.back();
  }
  if (gpu_nodes_.empty()) return;
  goodput_ = GoodputOn(gpus_by_node_, SplitOn(gpus_by_node_));
  standstill_s_ = starts_ == 0 ? standstills.start_s : standstills.restart_s;
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

  while (seconds > 0 && !completed_s_) {
    const double end = application_->EndOf(epoch_);
    if (progress_ + goodput_ * seconds < end) {
      progress_ += goodput_ * seconds;
      pass(seconds);
    } else {
      pass(std::nearbyint((end - progress_) / goodput_));  // Epochs end at whole seconds.
      progress_ = end;
      if (++epoch_ == application_->epochs()) {
        completed_s_ = now_s;
      } else {
        goodput_ = GoodputOn(gpus_by_node_, SplitOn(gpus_by_node_));
      }
    }
  }
}

}  // namespace grus

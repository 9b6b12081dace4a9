// SPDX-License-Identifier: Apache-2.0
// One job of a Pollux workload as it trains: how far it is after some seconds on some GPUs. The rules are those of
// AdaptDL's simulator (simulator/simulator.py, class Job).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/sim/pollux_application.h"

namespace grus {

// A node for each GPU of a job; those of one node stand together. Empty: the job holds nothing.
using GpuNodes = std::vector<int>;

struct Submission {
  std::string name;
  double time_s = 0;
  std::string application;
  int gpus = 0;   // What a rigid policy gives the job.
  int batch = 0;  // Samples in a step, over all GPUs.
};

enum class BatchSize {
  kAsSubmitted,
  kAdaptive,  // That of most goodput, chosen at each move and for each epoch.
};

// How long a job stands still on its GPUs before it trains.
struct Standstills {
  double start_s = 30, restart_s = 30;
};

class ReplayJob {
 public:
  // `application` outlives the job. REQUIRES: its batch sizes hold that of `submission`.
  ReplayJob(Submission submission, const Application& application, BatchSize batch_size);

  // The same job, submitted by another name at another time. REQUIRES: it has not trained.
  void Resubmit(std::string name, double time_s);

  const std::string& name() const { return submission_.name; }
  const Application& application() const { return *application_; }
  double submitted_s() const { return submission_.time_s; }
  int batch() const { return submission_.batch; }
  int requested_gpus() const { return submission_.gpus; }
  const GpuNodes& gpu_nodes() const { return gpu_nodes_; }
  int epoch() const { return epoch_; }
  double attained_gpu_s() const { return attained_gpu_s_; }
  int restarts() const { return starts_ > 0 ? starts_ - 1 : 0; }
  std::optional<double> completed_s() const { return completed_s_; }

  // The largest size at which each GPU still has the smallest local batch that was measured.
  int max_gpus() const;

  // In this epoch, on these GPUs; the numbers on each node, none of them 0. Samples a second if the batch size stays,
  // goodput if it adapts: samples of one batch size are worth more than those of another.
  double SpeedOn(const std::vector<int>& gpus_by_node) const;

  // Trains from `now_s` for `seconds`, or until it is complete.
  void Train(double now_s, double seconds);

  // Other GPUs. None: it waits.
  void Move(GpuNodes gpu_nodes, const Standstills& standstills);

 private:
  // How a batch is spread over GPUs: `accumulations` + 1 smaller steps of `local` samples each.
  struct BatchSplit {
    int local = 0;
    int accumulations = 0;
    int batch = 0;  // That comes of it; not always the one submitted.
  };
  BatchSplit SplitOver(int gpus, int batch) const;
  BatchSplit SplitOn(const std::vector<int>& gpus_by_node) const;
  double SecondsOfStep(const std::vector<int>& gpus_by_node, const BatchSplit& split) const;

  // Steps of the initial batch size that a second in this epoch is worth.
  double GoodputOn(const std::vector<int>& gpus_by_node, const BatchSplit& split) const;

  Submission submission_;
  const Application* application_;
  BatchSize batch_size_;
  GpuNodes gpu_nodes_;
  std::vector<int> gpus_by_node_;
  double goodput_ = 0;
  double standstill_s_ = 0;  // Still to come.
  double attained_gpu_s_ = 0;
  int starts_ = 0;
  int epoch_ = 0;
  double progress_ = 0;  // In steps of the application's initial batch size.
  std::optional<double> completed_s_;
};

}  // namespace grus

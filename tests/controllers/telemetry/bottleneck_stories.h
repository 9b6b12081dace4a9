// SPDX-License-Identifier: Apache-2.0
// Jobs with a known bottleneck, as their series show it.
#pragma once

#include <functional>
#include <string>

#include "controllers/telemetry/bottleneck.h"
#include "tests/controllers/telemetry/job_player.h"

namespace grus::stories {

struct BottleneckStory {
  std::string name;
  Bottleneck answer = Bottleneck::kUnknown;
  std::int32_t gpus = 1, nodes = 1;
  double network_limit = 0;
  std::vector<Phase> cycle = {};  // Which comes again and again.
};

constexpr double kMB = 1e6, kGB = 1e9;

inline std::vector<BottleneckStory> BottleneckStories() {
  using enum Bottleneck;
  const double ten_gigabit = 1.25 * kGB;
  return {
      {"JPEGs are decoded by too few CPUs",
       kInput,
       1,
       1,
       0,
       {{.seconds = 60, .gpu = 0.45, .bandwidth = 0.3, .cpu = 0.98, .network = 2 * kMB, .disk = 90 * kMB}}},
      {"augmentation on all CPUs, 8 GPUs",
       kInput,
       8,
       1,
       ten_gigabit,
       {{.seconds = 60, .gpu = 0.6, .bandwidth = 0.35, .cpu = 0.95, .network = 300 * kMB, .disk = 5 * kMB}}},
      {"the loader refills by turns, and takes all CPUs for it",
       kInput,
       1,
       1,
       0,
       {{.seconds = 40, .gpu = 0.93, .bandwidth = 0.5, .cpu = 0.4, .disk = 60 * kMB},
        {.seconds = 25, .gpu = 0.04, .bandwidth = 0.02, .cpu = 0.99, .disk = 60 * kMB}}},
      {"a slow disk is read before each part",
       kInput,
       1,
       1,
       0,
       {{.seconds = 50, .gpu = 0.9, .bandwidth = 0.5, .cpu = 0.3, .disk = 10 * kMB},
        {.seconds = 30, .gpu = 0, .bandwidth = 0, .cpu = 0.15, .disk = 210 * kMB}}},
      {"the data set comes over a full network",
       kInput,
       1,
       1,
       ten_gigabit,
       {{.seconds = 60, .gpu = 0.5, .bandwidth = 0.3, .cpu = 0.4, .network = 1.15 * kGB}}},
      {"objects are fetched by turns over the network",
       kInput,
       4,
       1,
       0,
       {{.seconds = 45, .gpu = 0.9, .bandwidth = 0.5, .cpu = 0.3, .network = 20 * kMB},
        {.seconds = 30, .gpu = 0.05, .bandwidth = 0.02, .cpu = 0.3, .network = 700 * kMB}}},
      {"a large convolutional network",
       kCompute,
       1,
       1,
       0,
       {{.seconds = 300, .gpu = 0.97, .bandwidth = 0.45, .cpu = 0.35, .disk = 80 * kMB},
        {.seconds = 30, .gpu = 0.6, .bandwidth = 0.3, .cpu = 0.5, .disk = 80 * kMB}}},
      {"matrix products on 8 GPUs of one node",
       kCompute,
       8,
       1,
       ten_gigabit,
       {{.seconds = 60, .gpu = 0.99, .bandwidth = 0.5, .cpu = 0.2, .network = 3 * kMB}}},
      {"compute on two nodes with a fast network",
       kCompute,
       16,
       2,
       25 * kGB,
       {{.seconds = 60, .gpu = 0.98, .bandwidth = 0.48, .cpu = 0.3, .network = 4 * kGB}}},
      {"compute, with the CPUs busy too",
       kCompute,
       1,
       1,
       0,
       {{.seconds = 60, .gpu = 0.96, .bandwidth = 0.4, .cpu = 0.92, .disk = 50 * kMB}}},
      {"embeddings", kMemoryBandwidth, 1, 1, 0, {{.seconds = 60, .gpu = 0.97, .bandwidth = 0.86, .cpu = 0.3}}},
      {"tokens are decoded one by one",
       kMemoryBandwidth,
       1,
       1,
       0,
       {{.seconds = 60, .gpu = 0.98, .bandwidth = 0.8, .cpu = 0.15, .network = 1 * kMB}}},
      {"a recommender on 8 GPUs of one node",
       kMemoryBandwidth,
       8,
       1,
       ten_gigabit,
       {{.seconds = 120, .gpu = 0.95, .bandwidth = 0.82, .cpu = 0.5, .network = 200 * kMB}}},
      {"gradients over a full network, the GPUs look busy",
       kCommunication,
       8,
       4,
       ten_gigabit,
       {{.seconds = 60, .gpu = 0.99, .bandwidth = 0.2, .cpu = 0.3, .network = 1.12 * kGB}}},
      {"gradients over a full network, the GPUs wait",
       kCommunication,
       4,
       4,
       ten_gigabit,
       {{.seconds = 60, .gpu = 0.55, .bandwidth = 0.25, .cpu = 0.35, .network = 1.1 * kGB}}},
      {"long all-reduces on a network of unknown speed",
       kCommunication,
       8,
       2,
       0,
       {{.seconds = 35, .gpu = 0.97, .bandwidth = 0.5, .cpu = 0.3, .network = 30 * kMB},
        {.seconds = 25, .gpu = 0.2, .bandwidth = 0.05, .cpu = 0.3, .network = 1.1 * kGB}}},
      {"a broadcast of parameters each round",
       kCommunication,
       16,
       4,
       3 * kGB,
       {{.seconds = 50, .gpu = 0.9, .bandwidth = 0.45, .cpu = 0.3, .network = 100 * kMB},
        {.seconds = 40, .gpu = 0.1, .bandwidth = 0.05, .cpu = 0.25, .network = 2.2 * kGB}}},
      {"nothing runs", kNone, 2, 1, 0, {{.seconds = 60, .gpu = 0, .cpu = 0.03, .network = 0.1 * kMB}}},
      {"one Python thread launches small kernels",
       kUnknown,
       1,
       1,
       0,
       {{.seconds = 60, .gpu = 0.5, .bandwidth = 0.2, .cpu = 0.13, .network = 1 * kMB, .disk = 1 * kMB}}},
      {"evaluation on the CPUs at the end of each epoch",
       kCompute,
       1,
       1,
       0,
       {{.seconds = 400, .gpu = 0.98, .bandwidth = 0.45, .cpu = 0.4, .disk = 50 * kMB},
        {.seconds = 25, .gpu = 0.05, .bandwidth = 0.01, .cpu = 0.95, .disk = 20 * kMB}}},
  };
}

}  // namespace grus::stories

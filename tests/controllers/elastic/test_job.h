// SPDX-License-Identifier: Apache-2.0
// The job of the tests of elastic jobs: team-a/bert, with one GPU a worker.
#pragma once

#include <string>

#include "crds/types/elastic_horovod_job.h"
#include "tests/kit/moment.h"

namespace grus {

using testing::At;

inline api::ElasticHorovodJob TestJob() {
  api::ElasticHorovodJob job;
  job.metadata.name = "bert";
  job.metadata.ns = "team-a";
  job.metadata.uid = "0b6f1c9e-uid";
  job.metadata.generation = 1;
  job.spec.launcher.image = "registry.example.com/launcher:1";
  job.spec.launcher.python_command = {"python", "/train.py"};
  job.spec.workers.image = "registry.example.com/worker:1";
  job.status.observed_generation = 1;
  return job;
}

inline std::string PodName(int ordinal) { return "bert-workers-" + std::to_string(ordinal); }

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests of TrialJob: TrialJobs, and a trainer that writes the logs of their launchers at a speed
// that depends on the number of GPUs.
#pragma once

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <thread>

#include "crds/types/trial_job.h"
#include "tests/integration/elastic_job.h"

namespace grus::testing {

// Plays the trainings of a namespace: each launcher or pod of a trial that runs prints a line ten times a second, until
// it is gone.
class Trainer {
 public:
  using Line = std::function<std::string(int gpus, int number)>;

  Trainer(World& world, std::string ns, Line line);
  ~Trainer();  // Stops.

 private:
  void Run(std::stop_token stop);

  World& world_;
  const std::string ns_;
  const Line line_;
  struct Log {
    std::ofstream file;
    int gpus = 0, number = 0;
  };
  std::map<std::string, Log> logs_;  // By UID of the launcher's pod.
  std::jthread thread_;              // Last.
};

class TrialJobs : public ElasticJob {
 protected:
  static constexpr char kTrialJob[] = "tune";

  void TearDown() override;

  // A workload of one GPU a worker on this test's nodes; `spec` is merged over it.
  void CreateTrialJob(std::string_view spec, const std::string& name = kTrialJob);
  // Every launcher says `per_gpu` samples a second for each of its GPUs, up to so many that help.
  void Train(double per_gpu, int most_gpus);
  void Train(Trainer::Line line) { trainer_ = std::make_unique<Trainer>(world(), ns(), std::move(line)); }

  std::shared_ptr<const api::TrialJob> Tune(const std::string& name = kTrialJob) const {
    return world().Get<api::TrialJob>(ns(), name);
  }
  bool HasPhase(api::TrialJobPhase phase, const std::string& name = kTrialJob) const;
  std::string ReadyReason(const std::string& name = kTrialJob) const { return kit::ReasonOf(Tune(name)); }
  std::string ReadyMessage(const std::string& name = kTrialJob) const { return kit::MessageOf(Tune(name)); }
  // Trials of that phase, as "2 GPUs PrecisionReached".
  std::vector<std::string> Trials(api::TrialPhase phase, const std::string& name = kTrialJob) const;
  std::optional<api::Recommendation> Knee(const std::string& name = kTrialJob) const;
  // No job, pod, Service, StatefulSet, launcher or PodGroup of a trial is there.
  bool NothingIsLeft() const;

 private:
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace grus::testing

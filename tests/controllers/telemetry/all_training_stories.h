// SPDX-License-Identifier: Apache-2.0
// The last kinds of trainings, and the table of all.
#pragma once

#include "tests/controllers/telemetry/more_training_stories.h"

namespace grus::stories {

inline Story AlternatingNetworks(Random& random) {  // Generator and discriminator by turns.
  Course course(random);
  const double first = random.Uniform(0.8, 0.95), second = random.Uniform(0.45, 0.6);
  for (int round = 0; round < course.cycles; ++round) {
    course.Add(0.5 * course.Length(random), first);
    course.Add(0.5 * course.Length(random), second);
  }
  course.Measure(course.cycles, 1);
  return course.Told(random, first);
}

inline Story SlowerAndSlower(Random& random) {  // Each epoch takes a little longer.
  Course course(random);
  course.cycles = std::min(course.cycles, 6);
  const double train = random.Uniform(0.75, 0.95), part = course.Part(random.Uniform(0.08, 0.2));
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    const double length = course.Length(random) * (1 + 0.015 * epoch);
    course.Add((1 - part) * length, train);
    course.Add(part * length, 0.2);
  }
  course.Measure(course.cycles, 1);
  return course.Told(random, train);
}

inline Story OneRankEvaluates(Random& random) {  // The other GPUs wait in a barrier, and look busy.
  Course course(random);
  const double train = random.Uniform(0.88, 0.99), part = course.Part(random.Uniform(0.08, 0.2));
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    const double length = course.Length(random);
    course.Add((1 - part) * length, train);
    course.Add(part * length, train - random.Uniform(0.2, 0.25));
  }
  course.Measure(course.cycles, 1);
  return course.Told(random, train);
}

inline std::vector<Kind> Trainings() {
  return {
      {"epochs with evaluation", false, [](Random& random) { return EpochsWithEvaluation(random); }},
      {"checkpoint pauses", false, CheckpointPauses},
      {"long steps", false, LongSteps},
      {"rollouts and updates", false, RolloutsAndUpdates},
      {"steps within epochs", false, StepsWithinEpochs},
      {"loading first", false,
       [](Random& random) { return EpochsWithEvaluation(random, 1, random.Uniform(0.3, 1.5)); }},
      {"busier evaluation", true, BusierEvaluation},
      {"stall at begin", true, StallAtBegin},
      {"slow first epoch", false,
       [](Random& random) { return EpochsWithEvaluation(random, random.Uniform(1.1, 1.3)); }},
      {"noisy input", true, NoisyInput},
      {"resized", false, Resized},
      {"three phases", true, ThreePhases},
      {"with an outage", true, WithOutage},
      {"busy all the time", false, BusyAllTheTime},
      {"alternating networks", true, AlternatingNetworks},
      {"slower and slower", true, SlowerAndSlower},
      {"one rank evaluates", true, OneRankEvaluates},
  };
}

}  // namespace grus::stories

// SPDX-License-Identifier: Apache-2.0
// Trainings of further kinds.
#pragma once

#include "tests/controllers/telemetry/training_stories.h"

namespace grus::stories {

inline Story BusierEvaluation(Random& random) {
  Course course(random);
  const double train = random.Uniform(0.4, 0.65), evaluation = random.Uniform(0.85, 0.98);
  const double part = course.Part(random.Uniform(0.1, 0.25));
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    const double length = course.Length(random);
    course.Add((1 - part) * length, train);
    course.Add(part * length, evaluation);
  }
  course.Measure(course.cycles, 1);
  return course.Told(random, train);
}

inline Story StallAtBegin(Random& random) {  // A shuffle buffer is filled again for each epoch.
  Course course(random);
  const double train = random.Uniform(0.6, 0.95), part = course.Part(random.Uniform(0.06, 0.15));
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    const double length = course.Length(random);
    course.Add(part * random.Normal(1, 0.1) * length, 0.03);
    for (const double ramp : {0.3, 0.6, 0.85}) course.Add(0.02 * length, ramp * train);
    course.Add((0.94 - part) * length, train);
  }
  course.Measure(course.cycles, 1);
  return course.Told(random, 0.03);
}

inline Story NoisyInput(Random& random) {
  Course course(random);
  course.sampling.noise = random.Uniform(0.08, 0.14);
  course.sampling.missing = 0.05;
  const double train = random.Uniform(0.45, 0.65), part = course.Part(random.Uniform(0.1, 0.2));
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    const double length = course.Length(random);
    course.Add((1 - part) * length, train);
    course.Add(part * length, 0.12);
  }
  course.Measure(course.cycles, 1);
  return course.Told(random, train);
}

inline Story Resized(Random& random) {  // It lost some of its GPUs.
  Course course(random);
  course.cycles = static_cast<int>(random.Uniform(4, 8));
  const double train = random.Uniform(0.75, 0.95), slower = random.Uniform(1.3, 2);
  for (int epoch = 0; epoch < 3; ++epoch) {
    course.Add(0.88 * course.Length(random), train);
    course.Add(0.12 * course.Length(random), 0.2);
  }
  course.Add(random.Uniform(20, 60), 0);
  course.period *= slower;
  const std::size_t from = course.phases.size();
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    course.Add(0.88 * course.Length(random), train);
    course.Add(0.12 * course.Length(random), 0.2);
  }
  course.Measure(course.cycles, from);
  return course.Told(random, train);
}

inline Story ThreePhases(Random& random) {  // Training, evaluation, and a checkpoint in which nothing runs.
  Course course(random);
  const double train = random.Uniform(0.8, 0.97), evaluation = random.Uniform(0.4, 0.6);
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    const double length = course.Length(random);
    course.Add(0.8 * length, train);
    course.Add(0.14 * length, evaluation);
    course.Add(0.06 * length, 0);
  }
  course.Measure(course.cycles, 1);
  return course.Told(random, train);
}

inline Story WithOutage(Random& random) {
  Course course(random);
  course.sampling.missing = 0.08;
  course.sampling.outage = random.Uniform(0.05, 0.2) * course.period;
  const double train = random.Uniform(0.7, 0.95);
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    const double length = course.Length(random);
    course.Add(0.85 * length, train);
    course.Add(0.15 * length, 0.25);
  }
  course.Measure(course.cycles, 1);
  return course.Told(random, train);
}

inline Story BusyAllTheTime(Random& random) {  // Only its memory shows the evaluations.
  Course course(random);
  course.sampling.noise = 0.008;
  const double memory = random.Uniform(10e9, 30e9), evaluation = memory * random.Uniform(1.06, 1.3);
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    const double length = course.Length(random);
    course.phases.push_back({.seconds = 0.85 * length, .gpu = 0.99, .bandwidth = 0.5, .memory = memory});
    course.phases.push_back({.seconds = 0.15 * length, .gpu = 0.99, .bandwidth = 0.5, .memory = evaluation});
  }
  course.phases.front() = {.seconds = 0.1 * course.period, .gpu = 0.99, .bandwidth = 0.5, .memory = memory};
  course.phases.push_back({.seconds = 0.3 * course.period, .gpu = 0.99, .bandwidth = 0.5, .memory = memory});
  return {.job = Play(course.phases, course.sampling, random), .period_s = course.period};
}

}  // namespace grus::stories

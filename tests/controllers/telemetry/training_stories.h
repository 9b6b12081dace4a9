// SPDX-License-Identifier: Apache-2.0
// Trainings that show at least three cycles, of kinds that differ in what a cycle looks like.
#pragma once

#include <functional>
#include <string>

#include "tests/controllers/telemetry/job_player.h"

namespace grus::stories {

struct Story {
  JobSeries job = {};
  double period_s = 0;  // 0: it has no cycle.
  double step_s = 0;    // Of the cycle within it; 0: it has none.
};

struct Kind {
  std::string name;
  bool is_held_out = false;  // Nothing was tuned on it.
  std::function<Story(Random&)> make;

  std::uint64_t SeedOf(std::uint64_t number) const {  // Each kind has its own.
    for (const char letter : name) number = number * 1099511628211 + static_cast<unsigned char>(letter);
    return number;
  }
};

struct Course {  // Of a training: how it is sampled, and how long it is.
  Sampling sampling = {};
  double period = 0, jitter = 0;
  int cycles = 0;
  std::vector<Phase> phases = {};

  explicit Course(Random& random) {
    sampling.step = random.Pick({1.0, 10.0, 15.0, 30.0});
    period = sampling.step * std::clamp(random.LogNormal(40, 0.8), 14.0, 900.0);
    cycles = static_cast<int>(random.Chance(0.5) ? 3 : random.Uniform(4, 11));
    sampling.missing = random.Uniform(0, 0.04);
    sampling.noise = random.Uniform(0.02, 0.06);
    jitter = random.Uniform(0.002, 0.025);
    phases.push_back({.seconds = random.Uniform(0.05, 0.3) * period});  // Imports, and the first batches.
  }
  double Length(Random& random) const { return period * std::clamp(random.Normal(1, jitter), 0.9, 1.1); }
  // Of a cycle. What is shorter than two samples does not show.
  double Part(double share) const { return std::max(share, 2.5 * sampling.step / period); }
  void Add(double seconds, double gpu) { phases.push_back({.seconds = seconds, .gpu = gpu, .bandwidth = 0.6 * gpu}); }
  // The mean length of the last `count` cycles, as they came out.
  void Measure(int count, std::size_t from) {
    double sum = 0;
    for (std::size_t at = from; at < phases.size(); ++at) sum += phases[at].seconds;
    period = sum / count;
  }
  // The fourth cycle has begun when it is looked at.
  Story Told(Random& random, double gpu) {
    Add(random.Uniform(0.1, 0.5) * period, gpu);
    return {.job = Play(phases, sampling, random), .period_s = period};
  }
};

inline Story EpochsWithEvaluation(Random& random, double first = 1, double loading = 0) {
  Course course(random);
  const double train = random.Uniform(0.7, 0.97), evaluation = random.Uniform(0.1, 0.45);
  const double part = course.Part(random.Uniform(0.05, 0.2));
  course.phases.front().seconds += loading * course.period;
  if (first != 1) ++course.cycles;  // Three that are alike come after it.
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    const double length = course.Length(random) * (epoch == 0 ? first : 1);
    course.Add((1 - part) * length, train);
    course.Add(part * length, evaluation);
  }
  if (first == 1) course.Measure(course.cycles, 1);
  return course.Told(random, train);
}

inline Story CheckpointPauses(Random& random) {
  Course course(random);
  const double train = random.Uniform(0.85, 0.98), pause = std::max(3 * course.sampling.step, 0.05 * course.period);
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    course.Add(course.Length(random) - pause, train);
    course.Add(pause, 0);
  }
  return course.Told(random, train);
}

inline Story LongSteps(Random& random) {
  Course course(random);
  course.sampling.step = 1;
  course.period = random.Uniform(9, 45);
  course.cycles = static_cast<int>(random.Uniform(15, 200));
  const double compute = random.Uniform(0.85, 1), wait = random.Uniform(0.15, 0.5), part = random.Uniform(0.2, 0.45);
  for (int step = 0; step < course.cycles; ++step) {
    const double length = course.Length(random);
    course.Add((1 - part) * length, compute);
    course.Add(part * length, wait);
  }
  return course.Told(random, compute);
}

inline Story RolloutsAndUpdates(Random& random) {
  Course course(random);
  course.jitter = random.Uniform(0.02, 0.04);
  const double rollout = random.Uniform(0.15, 0.4), update = random.Uniform(0.75, 0.95);
  const double part = random.Uniform(0.45, 0.75);
  for (int round = 0; round < course.cycles; ++round) {
    course.Add(part * course.Length(random), rollout);
    course.Add((1 - part) * course.Length(random), update);
  }
  course.Measure(course.cycles, 1);
  return course.Told(random, rollout);
}

inline Story StepsWithinEpochs(Random& random) {
  Course course(random);
  course.sampling.step = 1;
  const double step = random.Uniform(8, 25), wait = random.Uniform(0.4, 0.6);
  const int steps = static_cast<int>(random.Uniform(15, 60));
  const double evaluation = random.Uniform(0.12, 0.25) * steps * step;
  course.period = steps * step + evaluation;
  for (int epoch = 0; epoch < course.cycles; ++epoch) {
    for (int at = 0; at < steps; ++at) {
      const double length = step * random.Normal(1, 0.015);
      course.Add(0.7 * length, 0.95);
      course.Add(0.3 * length, wait);
    }
    course.Add(evaluation * random.Normal(1, 0.02), 0.2);
  }
  Story story = course.Told(random, 0.9);
  story.step_s = step;
  return story;
}

}  // namespace grus::stories

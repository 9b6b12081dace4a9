// SPDX-License-Identifier: Apache-2.0
// Jobs that have no cycle, although many of them come in bursts: notebooks, inference, noise, idle ones, ramps.
#pragma once

#include "tests/controllers/telemetry/training_stories.h"

namespace grus::stories {

struct Length {  // How they are sampled, and how long they run.
  Sampling sampling = {};
  double seconds = 0;
  explicit Length(Random& random) {
    sampling.step = random.Pick({1.0, 10.0, 15.0, 30.0});
    sampling.missing = random.Uniform(0, 0.04);
    seconds = sampling.step * std::clamp(random.LogNormal(600, 1), 100.0, 10080.0);
  }
  Story Told(std::span<const Phase> phases, Random& random) const { return {.job = Play(phases, sampling, random)}; }
};

// Stretches of work and of none, their lengths drawn by the caller.
inline Story Bursts(Random& random, const std::function<double()>& work, const std::function<double()>& pause,
                    const std::function<double()>& level) {
  const Length length(random);
  std::vector<Phase> phases;
  for (double time = 0; time < length.seconds;) {
    phases.push_back({.seconds = length.sampling.step * pause(), .memory = random.Uniform(2e9, 9e9)});
    phases.push_back({.seconds = length.sampling.step * work(), .gpu = level(), .memory = random.Uniform(2e9, 9e9)});
    time += phases.back().seconds + phases[phases.size() - 2].seconds;
  }
  return length.Told(phases, random);
}

inline Story Notebook(Random& random) {
  return Bursts(
      random, [&] { return random.LogNormal(8, 1); }, [&] { return random.Exponential(40); },
      [&] { return random.Uniform(0.2, 1); });
}

inline Story SameCellAgain(Random& random) {  // Somebody tries again and again, and thinks in between.
  const double work = random.Uniform(5, 30), pause = random.Uniform(10, 60);
  return Bursts(
      random, [&] { return work * random.Normal(1, 0.1); }, [&] { return random.LogNormal(pause, 0.8); },
      [] { return 0.9; });
}

inline Story Sweep(Random& random) {  // Trials of hyperparameters, one after the other.
  return Bursts(
      random, [&] { return random.LogNormal(60, 0.6); }, [&] { return random.Uniform(2, 6); },
      [&] { return random.Uniform(0.6, 1); });
}

inline Story OnAndOff(Random& random) {
  const double work = random.Uniform(5, 80), pause = random.Uniform(5, 80);
  return Bursts(
      random, [&] { return random.Exponential(work); }, [&] { return random.Exponential(pause); },
      [&] { return random.Uniform(0.4, 0.9); });
}

inline Story IdleWithBlips(Random& random) {
  return Bursts(
      random, [] { return 1.0; }, [&] { return random.Exponential(150); }, [] { return 0.03; });
}

inline Story RandomStalls(Random& random) {  // A training whose stalls have no rhythm.
  return Bursts(
      random, [&] { return random.Exponential(50); }, [&] { return random.Exponential(3); }, [] { return 0.9; });
}

// The load as a process of its own, a value for each sample.
inline Story Load(Random& random, const std::function<double(double part)>& load, double noise) {
  Length length(random);
  length.sampling.noise = noise;
  std::vector<Phase> phases;
  const double count = std::floor(length.seconds / length.sampling.step);
  for (double at = 0; at < count; ++at) {
    const double level = load(at / count);
    phases.push_back({.seconds = length.sampling.step, .gpu = level, .bandwidth = level / 2});
  }
  return length.Told(phases, random);
}

inline Story Requests(Random& random) {  // Many small ones.
  const double rate = random.Uniform(0.2, 0.7);
  return Load(
      random, [&, rate](double) { return rate * std::max(0.0, random.Normal(1, 0.25)); }, 0.03);
}

inline Story Inert(Random& random, double inertia, double spread) {
  double state = 0;
  return Load(
      random,
      [&random, state, inertia, spread](double) mutable {
        state = inertia * state + std::sqrt(1 - inertia * inertia) * random.Normal(0, spread);
        return std::clamp(0.5 + state, 0.0, 1.0);
      },
      0.02);
}

inline Story WarmUp(Random& random) {
  const double end = random.Uniform(0.2, 0.9), level = random.Uniform(0.6, 0.98);
  const bool is_linear = random.Chance(0.5);
  return Load(
      random,
      [=](double part) { return level * (is_linear ? std::min(1.0, part / end) : 1 - std::exp(-4 * part / end)); },
      0.04);
}

inline Story Steady(Random& random) {
  const double level = random.Uniform(0.5, 1);
  return Load(
      random, [level](double) { return level; }, random.Uniform(0.005, 0.08));
}

inline Story Steps(Random& random) {  // Another model is served every now and then.
  double level = random.Uniform(0.2, 0.9);
  return Load(
      random,
      [&random, level](double) mutable {
        if (random.Chance(0.008)) level = random.Uniform(0.2, 0.9);
        return level;
      },
      0.04);
}

inline std::vector<Kind> Others() {
  return {
      {"notebook", false, Notebook},
      {"requests", false, Requests},
      {"white noise", false, [](Random& random) { return Inert(random, 0, 0.2); }},
      {"warm-up", false, WarmUp},
      {"idle with blips", false, IdleWithBlips},
      {"steady", false, Steady},
      {"same cell again", false, SameCellAgain},
      {"on and off", true, OnAndOff},
      {"slow noise", true, [](Random& random) { return Inert(random, random.Uniform(0.9, 0.995), 0.2); }},
      {"sweep of trials", true, Sweep},
      {"steps", true, Steps},
      {"random stalls", true, RandomStalls},
  };
}

}  // namespace grus::stories

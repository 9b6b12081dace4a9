// SPDX-License-Identifier: Apache-2.0
// How the GPU memory of trainings grows until they end, as caching allocators make it: they keep what they once took.
#pragma once

#include <functional>
#include <string>

#include "tests/controllers/telemetry/job_player.h"

namespace grus::stories {

constexpr double kMiB = 1024.0 * 1024, kGiB = 1024 * kMiB;

struct MemoryStory {
  Series memory = {};  // Of the whole run, from its first epoch on.
  double period_s = 0;
  double peak = 0;  // Of the run, also between samples.
};

struct MemoryKind {
  std::string name;
  bool is_held_out = false;  // Nothing was tuned on it.
  bool has_peak = true;      // False: it grows as long as it runs.
  // Bytes at a time; 1 is the end of the first epoch. Called in the order of time.
  std::function<std::function<double(double epoch)>(Random&)> make;
};

inline MemoryStory Run(const MemoryKind& kind, Random& random) {
  MemoryStory story;
  const auto bytes = kind.make(random);
  const double samples = std::floor(random.Uniform(20, 200)), epochs = std::floor(random.Uniform(8, 45));
  story.memory.step = random.Pick({1.0, 10.0, 15.0, 30.0});
  story.memory.start = 1790000000;
  story.period_s = samples * story.memory.step;
  for (double at = 0; at < samples * epochs; ++at) {
    const double now = std::ceil(bytes(at / samples) / (2 * kMiB)) * 2 * kMiB;
    story.peak = std::max(story.peak, now);
    story.memory.values.push_back(random.Chance(0.03) ? NAN : static_cast<float>(now));
  }
  return story;
}

inline std::vector<MemoryKind> MemoryKinds() {
  const auto base = [](Random& random) { return random.LogNormal(10 * kGiB, 0.6); };
  return {
      {"plateau", false, true,
       [=](Random& random) {
         const double model = base(random);
         return [=](double epoch) { return model * std::min(1.0, 0.3 + 40 * epoch); };
       }},
      {"evaluation takes more", false, true,
       [=](Random& random) {
         const double model = base(random), more = random.Uniform(1.03, 1.35), part = random.Uniform(0.8, 0.95);
         return [=](double epoch) { return epoch > part ? model * more : model; };
       }},
      {"broken blocks", false, true,  // Ever more seldom, no block is large enough, and another one is taken.
       [=](Random& random) {
         const double model = base(random), rate = random.Uniform(0.5, 2);
         double now = model, next = 0.05;
         return [=, &random](double epoch) mutable {
           while (epoch > next) {
             now += std::min(random.LogNormal(40 * kMiB, 0.8), 0.01 * model);
             next *= std::exp(random.Exponential(1 / rate));
           }
           return now;
         };
       }},
      {"saturating", false, true,
       [=](Random& random) {
         const double model = base(random), more = random.Uniform(0.02, 0.2), time = random.Uniform(0.2, 1);
         return [=](double epoch) { return model * (1 + more * (1 - std::exp(-epoch / time))); };
       }},
      {"leak", false, false,
       [=](Random& random) {
         const double model = base(random), more = random.Uniform(0.015, 0.05);
         return [=](double epoch) { return model * (1 + more * epoch); };
       }},
      {"longest batch", true, true,  // Each epoch has the same samples in other batches: the longest one decides.
       [=](Random& random) {
         const double model = base(random), spread = random.Uniform(0.05, 0.4);
         double most = 0;
         return [=, &random](double) mutable {
           double longest = 0;
           for (int batch = 0; batch < 6; ++batch) longest = std::max(longest, random.Uniform(0, 1));
           most = std::max(most, std::pow(longest, 2));
           return model * (1 + spread * most);
         };
       }},
      {"saved at the end of the first epoch", true, true,
       [=](Random& random) {
         const double model = base(random), more = random.Uniform(1.01, 1.15);
         return [=](double epoch) { return epoch >= 1 ? model * more : model; };
       }},
      {"emptied each epoch", true, true,
       [=](Random& random) {
         const double model = base(random), more = random.Uniform(1.1, 1.6);
         return [=](double epoch) { return model * (1 + (more - 1) * std::min(1.0, 2 * (epoch - std::floor(epoch)))); };
       }},
      {"all at once", true, true,  // XLA takes most of the GPU when it starts.
       [](Random& random) {
         const double gpu = random.Pick({16.0, 24.0, 40.0, 80.0}) * kGiB;
         return [=](double) { return 0.75 * gpu; };
       }},
      {"freed after loading", true, true,  // The checkpoint that it starts from lies beside the model for a while.
       [=](Random& random) {
         const double model = base(random), more = random.Uniform(1.02, 1.1);
         return [=](double epoch) { return epoch < 0.1 ? model * more : model; };
       }},
      {"faster leak", true, false,
       [=](Random& random) {
         const double model = base(random), more = random.Uniform(0.05, 0.2);
         return [=](double epoch) { return model * (1 + more * epoch); };
       }},
  };
}

}  // namespace grus::stories

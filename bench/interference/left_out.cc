// SPDX-License-Identifier: Apache-2.0
#include "bench/interference/left_out.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <stdexcept>

#include "controllers/interference/interference_model.h"

namespace grus {
namespace {

using Pair = std::pair<std::string, std::string>;

// The same in both orders.
Pair PairOf(const CoRunSample& sample) { return std::minmax(sample.job.fingerprint, sample.partner.fingerprint); }

template <typename T>
void Shuffle(std::vector<T>& items, std::mt19937& random) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random() % i]);
}

// Sums, not means.
void AddFigures(const std::vector<CoRunSample>& seen, const std::vector<CoRunSample>& asked, LeftOutFigures& sums) {
  const auto model = InterferenceModel::Fit(seen);
  if (!model) throw std::runtime_error(model.error().message());
  std::vector<PairQuestion> questions;
  for (const CoRunSample& sample : asked) questions.push_back({sample.job, sample.partner, sample.gpu_type});
  const std::vector<SpeedShare> told = model->Predict(questions);
  std::vector<double> speeds;
  for (const CoRunSample& sample : seen) speeds.push_back(sample.speed);
  std::ranges::sort(speeds);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const double speed = asked[i].speed, no_faster = std::min(1.0, speed);
    sums.co_runs += 1;
    sums.slow_down_error += std::abs(speed / told[i].speed - 1);
    sums.speed_error += std::abs(told[i].speed / speed - 1);
    sums.in_interval += no_faster >= told[i].low && no_faster <= told[i].high ? 1 : 0;
    sums.constant_error += std::abs(speed / speeds[speeds.size() / 2] - 1);
  }
}

LeftOutFigures Means(LeftOutFigures sums) {
  const double count = std::max(1, sums.co_runs);
  for (double* sum : {&sums.slow_down_error, &sums.speed_error, &sums.in_interval, &sums.constant_error}) *sum /= count;
  return sums;
}

}  // namespace

LeftOutFigures LeaveOutEach(const std::vector<CoRunSample>& samples, LeftOutUnit unit, bool only_own,
                            int seen_co_runs) {
  const auto key_of = [&](const SharedJob& job) {
    return unit == LeftOutUnit::kJob ? job.fingerprint : FamilyOf(job).name;
  };
  std::set<std::string> keys;
  for (const CoRunSample& sample : samples) keys.insert({key_of(sample.job), key_of(sample.partner)});
  LeftOutFigures sums;
  std::mt19937 random(1);
  for (const std::string& key : keys) {
    std::vector<Pair> pairs;
    for (const CoRunSample& sample : samples) {
      if (key_of(sample.job) == key) pairs.push_back(PairOf(sample));
    }
    Shuffle(pairs, random);
    pairs.resize(std::min(pairs.size(), static_cast<std::size_t>(seen_co_runs)));
    std::vector<CoRunSample> seen, asked;
    for (const CoRunSample& sample : samples) {
      const bool is_own = key_of(sample.job) == key;
      const bool takes_part = is_own || key_of(sample.partner) == key;
      if (!takes_part || std::ranges::count(pairs, PairOf(sample)) > 0) {
        seen.push_back(sample);
      } else if (is_own || !only_own) {
        asked.push_back(sample);
      }
    }
    AddFigures(seen, asked, sums);
  }
  return Means(sums);
}

SeenAndAsked DrawAFifth(const std::vector<CoRunSample>& samples, const std::string& gpu_type, bool knows_other_types,
                        std::uint32_t seed) {
  std::set<Pair> all;
  for (const CoRunSample& sample : samples) {
    if (sample.gpu_type == gpu_type) all.insert(PairOf(sample));
  }
  std::vector<Pair> pairs(all.begin(), all.end());
  std::mt19937 random(seed);
  Shuffle(pairs, random);
  const std::set<Pair> known(pairs.begin(), pairs.begin() + static_cast<std::ptrdiff_t>(pairs.size() / 5));
  SeenAndAsked drawn;
  for (const CoRunSample& sample : samples) {
    const bool is_here = sample.gpu_type == gpu_type;
    if (known.contains(PairOf(sample)) || (!is_here && knows_other_types)) {
      drawn.seen.push_back(sample);
    } else if (is_here) {
      drawn.asked.push_back(sample);
    }
  }
  return drawn;
}

LeftOutFigures KnowAFifth(const std::vector<CoRunSample>& samples, const std::string& gpu_type, bool knows_other_types,
                          std::uint32_t seed) {
  const SeenAndAsked drawn = DrawAFifth(samples, gpu_type, knows_other_types, seed);
  LeftOutFigures sums;
  AddFigures(drawn.seen, drawn.asked, sums);
  return Means(sums);
}

LeftOutFigures MeanOf(const std::vector<LeftOutFigures>& figures) {
  LeftOutFigures sums;
  for (const LeftOutFigures& one : figures) {
    sums.co_runs += 1;
    sums.slow_down_error += one.slow_down_error;
    sums.speed_error += one.speed_error;
    sums.in_interval += one.in_interval;
    sums.constant_error += one.constant_error;
  }
  return Means(sums);
}

}  // namespace grus

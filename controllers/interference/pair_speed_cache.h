// SPDX-License-Identifier: Apache-2.0
// Predictions of a model, kept: among thousands of GPUs the same few pairs come up again and again.
//
// A prediction is found by all that it depends on: both jobs with their features, and the GPU type. It is dropped with
// its model, and when there are very many.
//
// Thread-safe. The model is asked while no lock is held.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "controllers/interference/interference_model.h"

namespace grus {

// Some 300 bytes each. Beyond it, the cache starts anew.
inline constexpr std::size_t kMaxCachedPairs = 100'000;

// A PairQuestion that owns nothing.
struct PairQuestionView {
  const SharedJob* job = nullptr;
  const SharedJob* partner = nullptr;
  const std::string* gpu_type = nullptr;
};

class PairSpeedCache {
 public:
  using Model = std::shared_ptr<const InterferenceModel>;

  // REQUIRES: there is a model; one that knows nothing will do.
  explicit PairSpeedCache(Model model);

  // From now on, all predictions are those of this model.
  void SetModel(Model model);

  // In the order of the questions, all of one model. Those that are new are asked of it together. Features that cannot
  // have been measured count as not known.
  std::vector<SpeedShare> Predict(std::vector<PairQuestionView> questions);

  std::size_t size() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(const PairQuestionView& question) const;
    std::size_t operator()(const PairQuestion& question) const;
  };
  struct Equal {
    using is_transparent = void;
    bool operator()(const PairQuestionView& a, const PairQuestionView& b) const;
    bool operator()(const PairQuestion& a, const PairQuestionView& b) const;
    bool operator()(const PairQuestionView& a, const PairQuestion& b) const { return (*this)(b, a); }
    bool operator()(const PairQuestion& a, const PairQuestion& b) const;
  };
  using Speeds = std::unordered_map<PairQuestion, SpeedShare, Hash, Equal>;

  mutable std::mutex mutex_;
  Model model_;    // Guarded by mutex_.
  Speeds speeds_;  // Guarded by mutex_. All of model_.
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/pair_speed_cache.h"

#include <deque>
#include <functional>
#include <utility>

namespace grus {
namespace {

PairQuestionView ViewOf(const PairQuestion& question) { return {&question.job, &question.partner, &question.gpu_type}; }

void Mix(std::size_t& hash, std::size_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);  // As boost::hash_combine.
}

void Mix(std::size_t& hash, const SharedJob& job) {
  Mix(hash, std::hash<std::string>()(job.fingerprint));
  Mix(hash, std::hash<std::string>()(job.family));
  for (const auto feature : kSoloFeatures) Mix(hash, std::hash<std::optional<double>>()(job.solo.*feature));
}

// A feature that is no number is unlike itself: the question would never be found again.
std::deque<SharedJob> MakePossible(std::vector<PairQuestionView>& questions) {
  std::deque<SharedJob> kept;
  for (PairQuestionView& question : questions) {
    for (const SharedJob** job : {&question.job, &question.partner}) {
      if (WhyNoFeatures((*job)->solo)) *job = &kept.emplace_back(WithPossibleFeatures(**job));
    }
  }
  return kept;
}

}  // namespace

std::size_t PairSpeedCache::Hash::operator()(const PairQuestionView& question) const {
  std::size_t hash = std::hash<std::string>()(*question.gpu_type);
  Mix(hash, *question.job);
  Mix(hash, *question.partner);
  return hash;
}

std::size_t PairSpeedCache::Hash::operator()(const PairQuestion& question) const { return (*this)(ViewOf(question)); }

bool PairSpeedCache::Equal::operator()(const PairQuestionView& a, const PairQuestionView& b) const {
  return *a.job == *b.job && *a.partner == *b.partner && *a.gpu_type == *b.gpu_type;
}

bool PairSpeedCache::Equal::operator()(const PairQuestion& a, const PairQuestionView& b) const {
  return (*this)(ViewOf(a), b);
}

bool PairSpeedCache::Equal::operator()(const PairQuestion& a, const PairQuestion& b) const {
  return (*this)(a, ViewOf(b));
}

PairSpeedCache::PairSpeedCache(Model model) : model_(std::move(model)) {}

void PairSpeedCache::SetModel(Model model) {
  Speeds dropped;  // Freed without the lock.
  const std::lock_guard lock(mutex_);
  model_.swap(model);
  speeds_.swap(dropped);
}

std::vector<SpeedShare> PairSpeedCache::Predict(std::vector<PairQuestionView> questions) {
  const std::deque<SharedJob> kept = MakePossible(questions);
  std::vector<SpeedShare> answers(questions.size());
  std::vector<std::size_t> missing;
  Model model;
  {
    const std::lock_guard lock(mutex_);
    model = model_;
    for (std::size_t i = 0; i < questions.size(); ++i) {
      if (const auto found = speeds_.find(questions[i]); found != speeds_.end()) {
        answers[i] = found->second;
      } else {
        missing.push_back(i);
      }
    }
  }
  if (missing.empty()) return answers;

  std::vector<PairQuestion> asked;
  std::vector<std::size_t> asked_as;  // Of each that is missing, its place in `asked`.
  std::unordered_map<PairQuestionView, std::size_t, Hash, Equal> place_of;
  for (const std::size_t i : missing) {
    const PairQuestionView& view = questions[i];
    const auto [found, is_new] = place_of.emplace(view, asked.size());
    if (is_new) asked.push_back({*view.job, *view.partner, *view.gpu_type});
    asked_as.push_back(found->second);
  }
  const std::vector<SpeedShare> told = model->Predict(asked);
  for (std::size_t m = 0; m < missing.size(); ++m) answers[missing[m]] = told[asked_as[m]];

  Speeds dropped;  // Freed without the lock.
  const std::lock_guard lock(mutex_);
  if (model_ != model) return answers;  // They are of a model that is no longer in use.
  if (speeds_.size() + asked.size() > kMaxCachedPairs) speeds_.swap(dropped);
  for (std::size_t i = 0; i < asked.size() && speeds_.size() < kMaxCachedPairs; ++i) {
    speeds_.emplace(std::move(asked[i]), told[i]);
  }
  return answers;
}

std::size_t PairSpeedCache::size() const {
  const std::lock_guard lock(mutex_);
  return speeds_.size();
}

}  // namespace grus

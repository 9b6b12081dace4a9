// SPDX-License-Identifier: Apache-2.0
#include "controllers/measure/phase_words.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace grus {
namespace {

using std::string_view;

constexpr std::size_t kEvaluationPhases = 17;  // The first so many of kPhases are about evaluation.
constexpr std::array<string_view, 42> kPhases = {
    "eval",       "evaluate",   "evaluating",    "evaluation",   "evaluator", "val",         "valid",
    "validate",   "validating", "validation",    "test",         "testing",   "predict",     "predicting",
    "prediction", "inference",  "sanity",        "map",          "filter",    "loading",     "downloading",
    "download",   "generating", "tokenizing",    "tokenization", "tokenizer", "grouping",    "caching",
    "scanning",   "extracting", "preprocessing", "building",     "saving",    "saved",       "checkpoint",
    "fetching",   "resolving",  "converting",    "instances",    "uploading", "calibrating", "precomputing"};

// For each first letter, the lengths of the words in kPhases as a bit set.
constexpr std::array<std::uint32_t, 26> kPhaseLengths = [] {
  std::array<std::uint32_t, 26> lengths{};
  for (const string_view word : kPhases) lengths[static_cast<std::size_t>(word[0] - 'a')] |= 1U << word.size();
  return lengths;
}();

// Words after which "val" names a metric: "val loss 4.2" may appear in a line about training.
constexpr std::array<string_view, 8> kMetrics = {"loss",       "acc",   "accuracy", "ppl",
                                                 "perplexity", "error", "score",    "metric"};
constexpr std::size_t kLongestWord = 16;
constexpr std::size_t kShortestWord = 3;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::size_t WordEnd(string_view text, std::size_t at) {
  while (at < text.size() && IsLetter(text[at])) ++at;
  return at;
}

// A word in lower case; empty if it is too long to be one of ours.
class LowerWord {
 public:
  explicit LowerWord(string_view word) : size_(word.size() > kLongestWord ? 0 : word.size()) {
    std::transform(word.begin(), word.begin() + size_, letters_.begin(),
                   [](char c) { return static_cast<char>(c | 0x20); });
  }
  string_view text() const { return {letters_.data(), size_}; }

 private:
  std::array<char, kLongestWord> letters_;
  std::size_t size_;
};

// Whether the word is part of a path or of a name: "/opt/eval/run", "val_loss", "test.py", "my-test-job".
bool IsPartOfName(string_view text, std::size_t begin, std::size_t end) {
  constexpr string_view kNameChars = "/_.-";
  if (begin > 0 && kNameChars.find(text[begin - 1]) != string_view::npos) return true;
  if (end + 1 >= text.size() || kNameChars.find(text[end]) == string_view::npos) return false;
  return text[end] == '_' || IsLetter(text[end + 1]);
}

bool IsEvaluationWord(string_view word) {
  const auto end = kPhases.begin() + kEvaluationPhases;
  return std::find(kPhases.begin(), end, word) != end;
}

Phase PhaseOfWord(string_view text, std::size_t begin, std::size_t end) {
  const LowerWord word(text.substr(begin, end - begin));
  if (IsPartOfName(text, begin, end) || !IsPhaseWord(word.text())) return Phase::kTraining;
  std::size_t next = end;
  while (next < text.size() && !IsLetter(text[next])) ++next;
  const LowerWord following(text.substr(next, WordEnd(text, next) - next));
  if (std::find(kMetrics.begin(), kMetrics.end(), following.text()) != kMetrics.end()) return Phase::kTraining;
  return IsEvaluationWord(word.text()) ? Phase::kEvaluation : Phase::kOther;
}

}  // namespace

// Optimised for words that do not match: every word of every line is looked up.
bool IsPhaseWord(string_view word) {
  if (word.empty() || word[0] < 'a' || word[0] > 'z' || word.size() > 31) return false;
  if (!(kPhaseLengths[static_cast<std::size_t>(word[0] - 'a')] >> word.size() & 1)) return false;
  return std::find(kPhases.begin(), kPhases.end(), word) != kPhases.end();
}

Phase PhaseOf(string_view head, string_view text) {
  std::size_t at = head.size() - std::min(head.size(), kLongestHead);
  while (at < head.size()) {
    const std::size_t end = WordEnd(text, at);
    const Phase phase = end >= at + kShortestWord ? PhaseOfWord(text, at, end) : Phase::kTraining;
    if (phase != Phase::kTraining) return phase;
    at = std::max(end, at + 1);
  }
  return Phase::kTraining;
}

}  // namespace grus

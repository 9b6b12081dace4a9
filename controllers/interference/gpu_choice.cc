// SPDX-License-Identifier: Apache-2.0
#include "controllers/interference/gpu_choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <map>
#include <tuple>

#include "clientlib/base/printable.h"

namespace grus {
namespace {

// Sharing never pays for less: what jobs do to each other beyond the table, such as for CPUs, is not in the speeds.
constexpr double kLeastGainEver = 0.05;
// Where at most this is lost, nobody loses.
constexpr double kNoLoss = 0.02;
// As a share of the GPUs: so many waiting jobs take those that become free in the next while.
constexpr double kLongQueue = 0.25;
// Far below any gain.
constexpr double kTooSlow = -1000;
// Of names in an explanation, before they are escaped.
constexpr std::size_t kMaxNameBytes = 64;

struct JobLess {
  bool operator()(const SharedJob* a, const SharedJob* b) const { return *a < *b; }
};

// Gives equal jobs the same number. Features that cannot have been measured are dropped first: what is no number has no
// place in an order.
class JobNumbers {
 public:
  std::size_t Of(const SharedJob& job) {
    const SharedJob* possible = &job;
    if (WhyNoFeatures(job.solo)) possible = &kept_.emplace_back(WithPossibleFeatures(job));
    return numbers_.emplace(possible, numbers_.size()).first->second;
  }

 private:
  std::map<const SharedJob*, std::size_t, JobLess> numbers_;
  std::deque<SharedJob> kept_;
};

// GPUs that have the same residents, whatever their order, are one place.
struct DifferentPlaces {
  explicit DifferentPlaces(std::span<const CandidateGpu> candidates) {
    JobNumbers numbers;
    std::map<std::vector<std::size_t>, std::size_t> place_with;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      std::vector<std::size_t> residents;
      for (const SharedJob& resident : candidates[i].residents) residents.push_back(numbers.Of(resident));
      std::ranges::sort(residents);
      const auto [place, is_new] = place_with.emplace(std::move(residents), first.size());
      if (is_new) first.push_back(i);
      of_each.push_back(place->second);
    }
  }
  std::vector<std::size_t> first = {};    // The first candidate of each place; sorted.
  std::vector<std::size_t> of_each = {};  // The place of each candidate.
};

// Where the answers are that concern a resident.
struct ResidentAnswers {
  std::size_t job_beside = 0, beside_job = 0;
  std::vector<std::size_t> beside_others = {};
};

// Appends what is to be asked of a GPU, and returns where the answers will be, in the order of the residents.
std::vector<ResidentAnswers> AddQuestions(const SharedJob& job, const std::vector<SharedJob>& residents,
                                          const std::string& gpu_type, std::vector<PairQuestionView>& questions) {
  const auto ask = [&](const SharedJob& asked, const SharedJob& partner) {
    questions.push_back({&asked, &partner, &gpu_type});
    return questions.size() - 1;
  };
  std::vector<ResidentAnswers> places;
  for (const SharedJob& resident : residents) {
    ResidentAnswers& place = places.emplace_back();
    place.job_beside = ask(job, resident);
    place.beside_job = ask(resident, job);
    for (const SharedJob& other : residents) {
      if (&other != &resident) place.beside_others.push_back(ask(resident, other));
    }
  }
  return places;
}

GpuGain GainOf(const std::vector<ResidentAnswers>& places, const std::vector<SpeedShare>& answers, double least_speed) {
  GpuGain gain;
  std::vector<SpeedShare> job_beside_each;
  for (const ResidentAnswers& place : places) job_beside_each.push_back(answers[place.job_beside]);
  gain.job = CombinePartners(job_beside_each);
  gain.gain = gain.job.speed;
  // The prediction of each job errs on its own, so all of them at their low ends at once would be too rare.
  double reach = gain.job.speed - gain.job.low, slowest = gain.job.low;
  for (const ResidentAnswers& place : places) {
    std::vector<SpeedShare> beside_each, others_at_middle;
    for (const std::size_t other : place.beside_others) {
      beside_each.push_back(answers[other]);
      others_at_middle.push_back({answers[other].speed, answers[other].speed, answers[other].speed});
    }
    const SpeedShare before = CombinePartners(beside_each);
    beside_each.push_back(answers[place.beside_job]);
    others_at_middle.push_back(answers[place.beside_job]);
    const SpeedShare after = CombinePartners(beside_each);
    gain.gain += after.speed - before.speed;
    reach = std::hypot(reach, after.speed - CombinePartners(others_at_middle).low);
    slowest = std::min(slowest, after.low);
    gain.residents.push_back({before, after});
  }
  gain.gain -= reach;
  gain.is_too_slow = !places.empty() && slowest < least_speed;
  gain.is_without_loss = !places.empty() && gain.gain >= 1 - kNoLoss;
  return gain;
}

// Of each place.
std::vector<GpuGain> GainsOf(const SharedJob& job, std::span<const CandidateGpu> candidates,
                             const DifferentPlaces& places, const SharingDemand& demand, PairSpeedCache& speeds) {
  std::vector<PairQuestionView> questions;
  std::vector<std::vector<ResidentAnswers>> answers_of;
  for (const std::size_t first : places.first) {
    answers_of.push_back(AddQuestions(job, candidates[first].residents, demand.gpu_type, questions));
  }
  const std::vector<SpeedShare> answers = speeds.Predict(std::move(questions));
  std::vector<GpuGain> gains;
  for (std::size_t i = 0; i < places.first.size(); ++i) {
    gains.push_back(GainOf(answers_of[i], answers, demand.least_speed));
    gains.back().candidate = places.first[i];
  }
  return gains;
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3f", value);
  return text;
}

std::string Speed(const SpeedShare& share) {
  return Number(share.speed) + " (" + Number(share.low) + " at the low end)";
}

std::string Quoted(std::string_view name) {
  std::size_t end = std::min(name.size(), kMaxNameBytes);
  // Not within a character.
  while (end > 0 && end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  std::string text = "\"";
  kube::AppendPrintable(text, name.substr(0, end), "\"\\");
  return text + (end < name.size() ? "...\"" : "\"");
}

std::string NameOf(const SharedJob& job) {
  return job.fingerprint.empty() ? "a job without a name" : Quoted(job.fingerprint);
}

// Made of parts that are there as a whole or not at all.
class Explanation {
 public:
  void Add(std::string_view part) {
    if (is_full_) return;
    is_full_ = text_.size() + part.size() + kEnd.size() > kMaxExplanationBytes;
    text_ += is_full_ ? kEnd : part;
  }
  std::string Take() { return std::move(text_); }

 private:
  static constexpr std::string_view kEnd = " ...";
  std::string text_;
  bool is_full_ = false;
};

std::string WhoIsTooSlow(const GpuGain& gain, const CandidateGpu& gpu, double least_speed) {
  std::string who = "the job";
  double low = gain.job.low;
  for (std::size_t i = 0; i < gain.residents.size(); ++i) {
    if (gain.residents[i].after.low >= low) continue;
    low = gain.residents[i].after.low;
    who = NameOf(gpu.residents[i]);
  }
  return "too slow, as " + who + " would have " + Number(low) + " of its speed at the low end and is to have " +
         Number(least_speed);
}

void Describe(const GpuGain& gain, const CandidateGpu& gpu, double least_speed, Explanation& text) {
  if (gain.residents.empty()) return text.Add(Quoted(gpu.name) + " is free");
  text.Add(Quoted(gpu.name) + ": " + (gain.is_too_slow ? WhoIsTooSlow(gain, gpu, least_speed) + ", " : "") + "gain " +
           Number(gain.gain) + ", speed " + Speed(gain.job));
  for (std::size_t i = 0; i < gain.residents.size(); ++i) {
    text.Add(", " + NameOf(gpu.residents[i]) + " from " + Number(gain.residents[i].before.speed) + " to " +
             Speed(gain.residents[i].after));
  }
}

}  // namespace

double LeastGain(const SharingDemand& demand) {
  const auto gpus = static_cast<double>(std::max<std::size_t>(1, demand.gpus));
  const double queue = static_cast<double>(demand.waiting_jobs) / gpus;
  return std::max(kLeastGainEver, 1 - queue / kLongQueue);
}

std::vector<double> SuitabilityOf(const SharedJob& job, std::span<const CandidateGpu> candidates,
                                  const SharingDemand& demand, PairSpeedCache& speeds) {
  const DifferentPlaces places(candidates);
  const std::vector<GpuGain> gains = GainsOf(job, candidates, places, demand, speeds);
  std::vector<double> suitability;
  suitability.reserve(candidates.size());
  for (const std::size_t place : places.of_each) {
    const GpuGain& gain = gains[place];
    suitability.push_back(gain.gain + (gain.is_too_slow ? kTooSlow : gain.is_without_loss ? 1 : 0));
  }
  return suitability;
}

bool IsTooSlow(double suitability) { return suitability < kTooSlow / 2; }

GpuChoice ChooseGpu(const SharedJob& job, std::span<const CandidateGpu> candidates, const SharingDemand& demand,
                    PairSpeedCache& speeds) {
  std::vector<GpuGain> gains = GainsOf(job, candidates, DifferentPlaces(candidates), demand, speeds);
  // Free GPUs have a gain of 1.
  std::ranges::sort(gains, {}, [](const GpuGain& gain) {
    return std::tuple(gain.is_too_slow, !gain.is_without_loss, -gain.gain, gain.candidate);
  });
  GpuChoice choice{std::nullopt, {}, LeastGain(demand), demand.least_speed};
  for (GpuGain& gain : gains) {
    const bool pays = demand.waits != WhenToWait::kForGain || gain.is_without_loss || gain.gain >= choice.least_gain;
    const bool is_worth_it =
        gain.residents.empty() || demand.waits == WhenToWait::kNever || (!gain.is_too_slow && pays);
    if (!choice.chosen && is_worth_it) {
      choice.chosen = std::move(gain);
    } else if (choice.runners_up.size() < kMaxRunnersUp) {
      choice.runners_up.push_back(std::move(gain));
    }
  }
  return choice;
}

std::string Explain(const GpuChoice& choice, std::span<const CandidateGpu> candidates) {
  Explanation text;
  if (choice.chosen) {
    Describe(*choice.chosen, candidates[choice.chosen->candidate], choice.least_speed, text);
  } else if (choice.runners_up.empty()) {
    return "no GPU has room";
  } else {
    text.Add("waits for a free GPU; sharing one had to gain " + Number(choice.least_gain));
  }
  for (const GpuGain& other : choice.runners_up) {
    text.Add("; not ");
    Describe(other, candidates[other.candidate], choice.least_speed, text);
  }
  return text.Take();
}

}  // namespace grus

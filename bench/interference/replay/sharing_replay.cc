// SPDX-License-Identifier: Apache-2.0
#include "bench/interference/replay/sharing_replay.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

namespace grus {
namespace {

// In [0, 1). std::uniform_real_distribution differs between libraries.
double Draw(std::mt19937& random) { return static_cast<double>(random()) / 4294967296.0; }

double DrawExponential(std::mt19937& random) { return -std::log(1 - Draw(random)); }

double DrawGavel(std::mt19937& random) {
  // Means of 10^x over the two ranges.
  static const double kMean = 0.8 * (1000 - std::pow(10, 1.5)) / (1.5 * std::log(10)) + 0.2 * 9000 / std::log(10);
  const bool is_short = Draw(random) < 0.8;
  return std::pow(10, is_short ? 1.5 + 1.5 * Draw(random) : 3 + Draw(random)) / kMean;
}

class Cluster {
 public:
  Cluster(const std::vector<ArrivingJob>& jobs, std::size_t gpus, const MeasuredSpeeds& speeds, SharingPolicy& policy)
      : jobs_(jobs), speeds_(speeds), policy_(policy), on_gpu_(gpus), kinds_on_gpu_(gpus) {
    for (const ArrivingJob& job : jobs) left_.push_back(job.work);
  }

  SharingFigures Run() {
    while (ended_ < jobs_.size()) {
      const double next_end = NextEnd();
      const double next_arrival =
          arrived_ < jobs_.size() ? jobs_[arrived_].arrival : std::numeric_limits<double>::infinity();
      if (std::isinf(next_end) && std::isinf(next_arrival)) throw std::logic_error("jobs wait for free GPUs");
      AdvanceTo(std::min(next_end, next_arrival));
      if (next_arrival <= next_end) {
        waiting_.push_back(arrived_++);
      } else {
        EndJobs();
      }
      OfferWaiting();
    }
    double work = 0;
    for (const ArrivingJob& job : jobs_) work += job.work;
    figures_.mean_jct /= static_cast<double>(jobs_.size());
    figures_.makespan = now_ - jobs_.front().arrival;
    figures_.work_a_busy_second = work / busy_;
    figures_.work_a_gpu_second = work / (figures_.makespan * static_cast<double>(on_gpu_.size()));
    return figures_;
  }

 private:
  double SpeedOf(std::size_t gpu, std::size_t place) const {
    const std::vector<std::size_t>& kinds = kinds_on_gpu_[gpu];
    return kinds.size() == 1 ? 1 : speeds_.of(kinds[place], kinds[1 - place]);
  }

  double NextEnd() const {
    double next = std::numeric_limits<double>::infinity();
    for (std::size_t gpu = 0; gpu < on_gpu_.size(); ++gpu) {
      for (std::size_t place = 0; place < on_gpu_[gpu].size(); ++place) {
        next = std::min(next, now_ + left_[on_gpu_[gpu][place]] / SpeedOf(gpu, place));
      }
    }
    return next;
  }

  void AdvanceTo(double time) {
    const double seconds = time - now_;
    for (std::size_t gpu = 0; gpu < on_gpu_.size(); ++gpu) {
      if (!on_gpu_[gpu].empty()) busy_ += seconds;
      for (std::size_t place = 0; place < on_gpu_[gpu].size(); ++place) {
        left_[on_gpu_[gpu][place]] -= seconds * SpeedOf(gpu, place);
      }
    }
    now_ = time;
  }

  void EndJobs() {
    for (std::size_t gpu = 0; gpu < on_gpu_.size(); ++gpu) {
      for (std::size_t place = on_gpu_[gpu].size(); place-- > 0;) {
        const std::size_t job = on_gpu_[gpu][place];
        if (left_[job] > 1e-9) continue;  // Rounding.
        figures_.mean_jct += now_ - jobs_[job].arrival;
        ++ended_;
        on_gpu_[gpu].erase(on_gpu_[gpu].begin() + static_cast<std::ptrdiff_t>(place));
        kinds_on_gpu_[gpu].erase(kinds_on_gpu_[gpu].begin() + static_cast<std::ptrdiff_t>(place));
      }
    }
  }

  void OfferWaiting() {
    std::vector<bool> is_refused(speeds_.kinds().size());  // A job that is placed meanwhile makes no room for these.
    std::size_t count = waiting_.size();
    std::erase_if(waiting_, [&](std::size_t job) {
      const std::size_t kind = jobs_[job].kind;
      if (is_refused[kind]) return false;
      const std::optional<std::size_t> gpu = policy_.Choose(kind, kinds_on_gpu_, count);
      is_refused[kind] = !gpu;
      if (!gpu) return false;
      Place(job, *gpu);
      --count;
      return true;
    });
  }

  void Place(std::size_t job, std::size_t gpu) {
    const std::size_t kind = jobs_[job].kind;
    const std::vector<std::size_t>& there = kinds_on_gpu_.at(gpu);
    if (there.size() > 1 || (there.size() == 1 && !speeds_.CanShare(kind, there[0]))) {
      throw std::logic_error(speeds_.kinds()[kind] + " was put where it cannot run");
    }
    on_gpu_[gpu].push_back(job);
    kinds_on_gpu_[gpu].push_back(kind);
    figures_.longest_wait = std::max(figures_.longest_wait, now_ - jobs_[job].arrival);
  }

  const std::vector<ArrivingJob>& jobs_;
  const MeasuredSpeeds& speeds_;
  SharingPolicy& policy_;
  std::vector<std::vector<std::size_t>> on_gpu_, kinds_on_gpu_;  // Of each GPU, in the same order.
  std::vector<double> left_;                                     // Work, of each job.
  std::vector<std::size_t> waiting_;                             // In the order of arrival.
  std::size_t arrived_ = 0, ended_ = 0;
  double now_ = 0, busy_ = 0;
  SharingFigures figures_;
};

}  // namespace

MeasuredSpeeds::MeasuredSpeeds(std::vector<std::string> kinds, const std::vector<CoRunSample>& samples)
    : kinds_(std::move(kinds)), speeds_(kinds_.size() * kinds_.size()) {
  const auto index_of = [&](const std::string& kind) {
    const auto found = std::ranges::find(kinds_, kind);
    if (found == kinds_.end()) throw std::invalid_argument(kind + " is none of the kinds");
    return static_cast<std::size_t>(found - kinds_.begin());
  };
  for (const CoRunSample& sample : samples) {
    speeds_[index_of(sample.job.fingerprint) * kinds_.size() + index_of(sample.partner.fingerprint)] = sample.speed;
  }
}

std::vector<ArrivingJob> DrawJobs(std::size_t count, std::size_t kinds, std::size_t gpus, double load,
                                  WorkLengths lengths, std::uint32_t seed) {
  std::seed_seq own_stream = {seed, 1u};  // What else is drawn by the seed is to be drawn independently.
  std::mt19937 random(own_stream);
  std::vector<ArrivingJob> jobs;
  double now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now += DrawExponential(random) / (load * static_cast<double>(gpus));
    ArrivingJob job{now, 1, static_cast<std::size_t>(Draw(random) * static_cast<double>(kinds))};
    switch (lengths) {
      case WorkLengths::kUniform: job.work = 0.5 + Draw(random); break;
      case WorkLengths::kExponential: job.work = DrawExponential(random); break;
      case WorkLengths::kGavel: job.work = DrawGavel(random); break;
    }
    jobs.push_back(job);
  }
  return jobs;
}

SharingFigures Replay(const std::vector<ArrivingJob>& jobs, std::size_t gpus, const MeasuredSpeeds& speeds,
                      SharingPolicy& policy) {
  return Cluster(jobs, gpus, speeds, policy).Run();
}

}  // namespace grus

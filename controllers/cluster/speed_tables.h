// SPDX-License-Identifier: Apache-2.0
// The speed tables of jobs, kept: a fit takes 0.2 ms for 5 points and 25 ms for 512, and each plan asks for all tables.
//
// Tables are kept by the profile's name and resourceVersion; those of another version are replaced. Of more than
// kMostProfiles profiles, or kMostQuestions about one, those that nobody has asked for longest are forgotten.
//
// Thread-safe, without a clock. Threads that ask the same at the same time may each fit, but get the same table.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "controllers/policy/allocation.h"
#include "crds/types/workload_profile.h"

namespace grus {

class SpeedTables {
 public:
  using Table = std::shared_ptr<const std::vector<SpeedPoint>>;
  static constexpr std::size_t kMostProfiles = 1000, kMostQuestions = 8;

  SpeedTables() = default;
  SpeedTables(const SpeedTables&) = delete;
  SpeedTables& operator=(const SpeedTables&) = delete;

  // SpeedTableOf(profile.spec, ...). Never null; an empty table is an empty vector.
  Table Of(const api::WorkloadProfile& profile, const std::string& gpu_type, int gpus_per_worker, int most_workers,
           int gpus_per_node);

  // Frees the tables of a profile that is deleted.
  void Forget(const std::string& profile);

 private:
  struct Question {
    std::string gpu_type;
    int gpus_per_worker = 0, most_workers = 0, gpus_per_node = 0;
    friend auto operator<=>(const Question&, const Question&) = default;
  };
  struct Answer {
    Table table;
    std::uint64_t asked = 0;
  };
  struct Known {
    std::string resource_version;
    std::map<Question, Answer> answers;
    std::uint64_t asked = 0;
  };

  Table Find(const kube::ObjectMeta& profile, const Question& question);
  Table Keep(const kube::ObjectMeta& profile, const Question& question, Table table);

  std::mutex mutex_;  // Guards what follows.
  std::map<std::string, Known> profiles_;
  std::uint64_t asked_ = 0;  // Counts the questions: what was asked longest ago has the smallest number.
};

}  // namespace grus

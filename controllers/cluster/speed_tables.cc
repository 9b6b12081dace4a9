// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/speed_tables.h"

#include <algorithm>
#include <utility>

#include "controllers/throughput/speed_table.h"

namespace grus {
namespace {

template <typename Map>
void Bound(Map& map, std::size_t most) {
  if (map.size() <= most) return;
  map.erase(std::min_element(map.begin(), map.end(),
                             [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; }));
}

}  // namespace

SpeedTables::Table SpeedTables::Of(const api::WorkloadProfile& profile, const std::string& gpu_type,
                                   int gpus_per_worker, int most_workers, int gpus_per_node) {
  const Question question{gpu_type, gpus_per_worker, most_workers, gpus_per_node};
  if (Table table = Find(profile.metadata, question)) return table;
  std::vector<SpeedPoint> table = SpeedTableOf(profile.spec, gpu_type, gpus_per_worker, most_workers, gpus_per_node);
  return Keep(profile.metadata, question, std::make_shared<const std::vector<SpeedPoint>>(std::move(table)));
}

void SpeedTables::Forget(const std::string& profile) {
  const std::lock_guard lock(mutex_);
  profiles_.erase(profile);
}

SpeedTables::Table SpeedTables::Find(const kube::ObjectMeta& profile, const Question& question) {
  const std::lock_guard lock(mutex_);
  const auto known = profiles_.find(profile.name);
  if (known == profiles_.end() || known->second.resource_version != profile.resource_version) return nullptr;
  const auto answer = known->second.answers.find(question);
  if (answer == known->second.answers.end()) return nullptr;
  known->second.asked = answer->second.asked = ++asked_;
  return answer->second.table;
}

SpeedTables::Table SpeedTables::Keep(const kube::ObjectMeta& profile, const Question& question, Table table) {
  const std::lock_guard lock(mutex_);
  Known& known = profiles_[profile.name];
  if (known.resource_version != profile.resource_version) known = {profile.resource_version, {}, 0};
  Answer& answer = known.answers.try_emplace(question, Answer{std::move(table), 0}).first->second;
  known.asked = answer.asked = ++asked_;
  Table kept = answer.table;
  Bound(known.answers, kMostQuestions);
  Bound(profiles_, kMostProfiles);
  return kept;
}

}  // namespace grus

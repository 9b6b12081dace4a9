// SPDX-License-Identifier: Apache-2.0
// What trials of a workload measured, kept in WorkloadProfiles for all that come later.
//
// A profile is written by whoever measures, at the same time: each write takes the newest object, puts its
// points beside those of others, and is refused by the API server if somebody was faster; then it is tried
// again. Of one configuration the newest measurement stays; of more than api::kMaxProfilePoints the oldest
// go.
//
// Find() reads the cache, so it may not see the last writes yet; Save() reads the API server. Thread-safe;
// Save() blocks.
#pragma once

#include <chrono>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "crds/types/workload_profile.h"

namespace grus {

struct KnownSpeeds {
  api::ThroughputUnit unit = api::ThroughputUnit::kNotKnown;
  std::map<api::TrialConfig, api::ProfilePoint> points;
};

struct NewSpeeds {
  std::string fingerprint;
  api::ProfiledWorkload workload;
  api::ThroughputUnit unit = api::ThroughputUnit::kNotKnown;
  std::vector<api::ProfilePoint> points;  // Their names are given by Save().
};

class ProfileStore {
 public:
  // `profiles` are the WorkloadProfiles. All must outlive the store.
  ProfileStore(kube::Client& client, const kube::Informer& profiles, const kube::Clock& clock)
      : client_(client), profiles_(profiles), clock_(clock) {}

  // What was measured within `max_age` before `now`; nothing if there is no such profile, or it is being
  // deleted.
  KnownSpeeds Find(const std::string& fingerprint, std::chrono::seconds max_age, kube::Time now) const;

  // Adds points, and brings the status up to them. Writes nothing if all of it is there. Errors:
  // kInvalidArgument: the profile counts in another unit; kConflict: others were faster each time, or the
  // profile is being deleted.
  kube::Status Save(const NewSpeeds& speeds, std::stop_token stop = {});

 private:
  kube::Status TrySave(const NewSpeeds& speeds, std::stop_token stop);
  kube::Status WriteStatus(const api::WorkloadProfile& profile, std::stop_token stop);

  kube::Client& client_;
  const kube::Informer& profiles_;
  const kube::Clock& clock_;
};

// "A100-8g-2n-32b"; another for each configuration.
std::string PointName(const api::TrialConfig& config);

// `points` with `added` among them, as said above.
std::vector<api::ProfilePoint> MergePoints(std::vector<api::ProfilePoint> points,
                                           const std::vector<api::ProfilePoint>& added,
                                           std::size_t limit = api::kMaxProfilePoints);

}  // namespace grus

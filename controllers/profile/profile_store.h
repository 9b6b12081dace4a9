// SPDX-License-Identifier: Apache-2.0
// Measurements of workloads, kept in WorkloadProfiles for later trials.
//
// Several writers may save to a profile at the same time: each write starts from the newest object and adds its points.
// If another writer was faster, the API server refuses the write and the store tries again. For each configuration the
// newest measurement stays; one with a known number of nodes also replaces an older one without. Beyond
// api::kMaxProfilePoints the oldest are dropped.
//
// A Retry-After for one writer holds for all of them: until then a write of that profile fails with the same error.
//
// Find() reads the cache, which may lag behind; Save() and Edit() read the API server, and block. Thread-safe.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "controllers/frame/status_writer.h"
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
  std::vector<api::ProfilePoint> points;  // Save() sets their names.
};

// A change of a profile.
struct ProfileEdit {
  std::vector<api::ProfilePoint> points = {};   // To be added; the store sets their names.
  std::optional<api::ProfileDrift> drift = {};  // For the status; dropped if its point is newer.
};

class ProfileStore {
 public:
  // `profiles` are the WorkloadProfiles. All must outlive the store.
  ProfileStore(kube::Client& client, const kube::Informer& profiles, const kube::Clock& clock)
      : client_(client), profiles_(profiles), clock_(clock), statuses_(client, nullptr, clock) {}

  // What was measured within `max_age` before `now`; nothing if there is no such profile, or it is being deleted. A
  // look-up without a number of nodes finds the newest measurement on any number.
  KnownSpeeds Find(const std::string& fingerprint, std::chrono::seconds max_age, kube::Time now) const;

  // Adds points, and updates the status. Writes nothing if the profile has them all. Errors: kInvalidArgument: the
  // profile counts in another unit; kConflict: others were faster each time, or the profile is being deleted.
  kube::Status Save(const NewSpeeds& speeds, std::stop_token stop = {});

  // Changes a profile by what `edit` returns for its newest version, and updates the status. Writes nothing if there is
  // nothing to change, or no such profile; `edit` is called once for each version that was tried. Errors: kConflict, as
  // above.
  using Editor = std::function<ProfileEdit(const api::WorkloadProfile&)>;
  kube::Status Edit(const std::string& name, const Editor& edit, std::stop_token stop = {});

  // Whether Save() or Edit() is writing the profile in another thread, and so may update its status shortly.
  bool IsBeingWritten(const std::string& name) const;

 private:
  using Profile = std::shared_ptr<const api::WorkloadProfile>;
  // Of a profile whose writes wait for a Retry-After.
  struct Postponed {
    kube::TimePoint until;
    kube::Error why;
  };
  kube::Status Write(const std::string& name, const std::function<kube::Status()>& attempt, std::stop_token stop);
  kube::Status TrySave(const NewSpeeds& speeds, std::stop_token stop);
  kube::Status TryEdit(const std::string& name, const Editor& edit, std::stop_token stop);
  // The profile with `added` among its points, which have this unit.
  kube::Result<Profile> WritePoints(const Profile& profile, const std::vector<api::ProfilePoint>& added,
                                    api::ThroughputUnit unit, std::stop_token stop);
  kube::Status WriteStatus(const api::WorkloadProfile& profile, const std::optional<api::ProfileDrift>& drift,
                           std::stop_token stop);

  kube::Client& client_;
  const kube::Informer& profiles_;
  const kube::Clock& clock_;
  StatusWriter statuses_;                       // Without a WriteTracker: the profile was read live.
  mutable std::mutex mutex_;                    // Guards what follows.
  std::map<std::string, Postponed> postponed_;  // By the profile's name.
  std::multiset<std::string> being_written_;
};

// "A100-8g-2n-32b"; another for each configuration.
std::string PointName(const api::TrialConfig& config);

// `points` with `added` among them, as said above.
std::vector<api::ProfilePoint> MergePoints(std::vector<api::ProfilePoint> points,
                                           const std::vector<api::ProfilePoint>& added,
                                           std::size_t limit = api::kMaxProfilePoints);

}  // namespace grus

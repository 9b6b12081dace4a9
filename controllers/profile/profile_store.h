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
// One namespace has kMostOfNamespace profiles at most, and the cluster kMostProfiles: of more, one of that namespace,
// or of the one that has most, is deleted: of those without measurements, if there are any, that which was used longest
// ago. A speed that no GPU has is not saved.
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
#include "controllers/policy/workload_fingerprint.h"
#include "crds/types/workload_profile.h"

namespace grus {

inline constexpr std::size_t kMostOfNamespace = 500, kMostProfiles = 5000;

struct KnownSpeeds {
  api::ThroughputUnit unit = api::ThroughputUnit::kNotKnown;
  std::map<api::TrialConfig, api::ProfilePoint> points;
};

struct NewSpeeds {
  std::string fingerprint;
  api::ProfiledWorkload workload;
  api::ThroughputUnit unit = api::ThroughputUnit::kNotKnown;
  std::vector<api::ProfilePoint> points = {};  // Save() sets their names.
  std::vector<api::WorkloadRun> runs = {};     // Of the workload; the speeds may be none.
  std::vector<api::CoRun> co_runs = {};        // Samples, of one run each; their names are set, too.
};

// A change of a profile.
struct ProfileEdit {
  std::vector<api::ProfilePoint> points = {};   // To be added; the store sets their names.
  std::optional<api::ProfileDrift> drift = {};  // For the status; dropped if its point is newer.
  std::vector<api::CoRun> co_runs = {};         // Samples to be merged with those that it has (co_runs.h).
};

class ProfileStore {
 public:
  // `profiles` are the WorkloadProfiles. All must outlive the store.
  ProfileStore(kube::Client& client, const kube::Informer& profiles, const kube::Clock& clock,
               ProfileTrust trust = ProfileTrust::kNamespace)
      : client_(client), profiles_(profiles), clock_(clock), trust_(trust), statuses_(client, nullptr, clock) {}

  // What identities have to be made with.
  ProfileTrust trust() const { return trust_; }

  // What was measured within `max_age` before `now`; nothing if there is no such profile, or it is being deleted. A
  // look-up without a number of nodes finds the newest measurement on any number.
  KnownSpeeds Find(const std::string& fingerprint, std::chrono::seconds max_age, kube::Time now) const;

  // Adds points, runs and co-runs, and updates the status. Writes nothing if the profile has them all. Errors:
  // kInvalidArgument: the profile counts in another unit, or the speed is impossible; kConflict: others were faster
  // each time, or the profile is being deleted.
  kube::Status Save(const NewSpeeds& speeds, std::stop_token stop = {});

  // How many writes Save() makes of runs of a workload, at most, if nobody else writes its profile.
  int WritesOf(const std::string& fingerprint, const std::string& ns) const;

  // Changes a profile by what `edit` returns for its newest version, and updates the status. Writes nothing if there is
  // nothing to change, or no such profile; `edit` is called once for each version that was tried. Errors: kConflict, as
  // above.
  using Editor = std::function<ProfileEdit(const api::WorkloadProfile&)>;
  kube::Status Edit(const std::string& name, const Editor& edit, std::stop_token stop = {});

  // Deletes this version of it; if there is a newer one, or none, that is no error.
  kube::Status Delete(const api::WorkloadProfile& profile, std::stop_token stop = {});

  // Whether Save() or Edit() is writing the profile in another thread, and so may update its status shortly.
  bool IsBeingWritten(const std::string& name) const;

 private:
  using Profile = std::shared_ptr<const api::WorkloadProfile>;
  kube::Status Write(const std::string& name, const std::function<kube::Status()>& attempt, std::stop_token stop);
  kube::Status TrySave(const NewSpeeds& speeds, std::stop_token stop);
  // The one that has to go for another of this namespace; null: there is room.
  Profile FindOneToGo(const std::string& ns) const;
  kube::Status TryEdit(const std::string& name, const Editor& edit, std::stop_token stop);
  // The profile with what is new among its points, which have this unit, its runs and its co-runs.
  kube::Result<Profile> WriteNew(const Profile& profile, const NewSpeeds& added, std::stop_token stop);
  kube::Status WriteStatus(const api::WorkloadProfile& profile, const std::optional<api::ProfileDrift>& drift,
                           std::stop_token stop);

  kube::Client& client_;
  const kube::Informer& profiles_;
  const kube::Clock& clock_;
  const ProfileTrust trust_;
  StatusWriter statuses_;     // Without a WriteTracker: the profile was read live.
  mutable std::mutex mutex_;  // Guards what follows.
  std::multiset<std::string> being_written_;
};

// It may be deleted when it is old; what an administrator or a backup made stays.
bool IsMadeByGrus(const api::WorkloadProfile& profile);
// When it was last measured, when a run of it was last recorded, or else when it was made.
kube::Time LastUsed(const api::WorkloadProfile& profile);

// "A100-8g-2n-32b"; another for each configuration.
std::string PointName(const api::TrialConfig& config);

// `points` with `added` among them, as said above.
std::vector<api::ProfilePoint> MergePoints(std::vector<api::ProfilePoint> points,
                                           const std::vector<api::ProfilePoint>& added,
                                           std::size_t limit = api::kMaxProfilePoints);

}  // namespace grus

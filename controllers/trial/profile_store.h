// SPDX-License-Identifier: Apache-2.0
// What trials of a workload measured, kept in WorkloadProfiles for all that come later.
//
// A profile is written by whoever measures, at the same time: each write takes the newest object, puts its
// points beside those of others, and is refused by the API server if somebody was faster; then it is tried
// again. Of one configuration the newest measurement stays; one that knows its number of nodes also takes the place
// of an older one that does not. Of more than api::kMaxProfilePoints the oldest go.
//
// A server that asks one of the writers to come later (Retry-After) asks all of them: until then a write of that
// profile fails with the same error.
//
// Find() reads the cache, so it may not see the last writes yet; Save() and Edit() read the API server. Thread-safe;
// these two block.
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
  std::vector<api::ProfilePoint> points;  // Their names are given by Save().
};

// What shall become of a profile.
struct ProfileEdit {
  std::vector<api::ProfilePoint> points = {};   // To be added. Their names are given by the store.
  std::optional<api::ProfileDrift> drift = {};  // Of the status; goes all the same if a point is newer.
};

class ProfileStore {
 public:
  // `profiles` are the WorkloadProfiles. All must outlive the store.
  ProfileStore(kube::Client& client, const kube::Informer& profiles, const kube::Clock& clock)
      : client_(client), profiles_(profiles), clock_(clock), statuses_(client, nullptr, clock) {}

  // What was measured within `max_age` before `now`; nothing if there is no such profile, or it is being
  // deleted. Whoever does not know the number of nodes finds the newest of any.
  KnownSpeeds Find(const std::string& fingerprint, std::chrono::seconds max_age, kube::Time now) const;

  // Adds points, and brings the status up to them. Writes nothing if all of it is there. Errors:
  // kInvalidArgument: the profile counts in another unit; kConflict: others were faster each time, or the
  // profile is being deleted.
  kube::Status Save(const NewSpeeds& speeds, std::stop_token stop = {});

  // Changes a profile as `edit` says of its newest version, and brings the status up to that. Writes nothing if there
  // is nothing to change, or if there is no such profile: then `edit` is not called, unless it was for a version
  // before. Errors: kConflict, as above.
  using Editor = std::function<ProfileEdit(const api::WorkloadProfile&)>;
  kube::Status Edit(const std::string& name, const Editor& edit, std::stop_token stop = {});

  // By Save() or Edit() in another thread: what is behind in it may be on its way.
  bool IsBeingWritten(const std::string& name) const;

 private:
  using Profile = std::shared_ptr<const api::WorkloadProfile>;
  // The write that an answer with Retry-After holds up.
  struct Held {
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
  StatusWriter statuses_;             // Of what is read live: no cache is waited for.
  mutable std::mutex mutex_;          // Guards what follows.
  std::map<std::string, Held> held_;  // By the profile's name.
  std::multiset<std::string> being_written_;
};

// "A100-8g-2n-32b"; another for each configuration.
std::string PointName(const api::TrialConfig& config);

// `points` with `added` among them, as said above.
std::vector<api::ProfilePoint> MergePoints(std::vector<api::ProfilePoint> points,
                                           const std::vector<api::ProfilePoint>& added,
                                           std::size_t limit = api::kMaxProfilePoints);

}  // namespace grus

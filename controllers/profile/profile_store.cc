// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/profile_store.h"

#include <algorithm>
#include <tuple>

#include "clientlib/client/conflict_retry.h"
#include "clientlib/model/json_writer.h"
#include "controllers/cluster/owners.h"
#include "controllers/policy/profile_drift.h"
#include "controllers/profile/co_runs.h"
#include "controllers/profile/profile_status.h"
#include "controllers/telemetry/run_usage.h"

namespace grus {
namespace {

using api::ProfilePoint;
using api::WorkloadProfile;
using kube::ErrorCode;
using kube::Json;
using kube::KindOf;

template <typename T>
Json ListOf(const std::vector<T>& items) {
  Json list = Json::MakeArray();
  for (const T& item : items) list.Append(kube::ToJson(item));
  return list;
}

std::string UnitName(api::ThroughputUnit unit) {
  const std::string_view name = api::EnumNames(unit)[static_cast<std::size_t>(unit)];
  return name.empty() ? "an unknown unit" : std::string(name);
}

bool IsWithoutUnit(const api::WorkloadProfileSpec& profile) {
  return profile.throughput_unit == api::ThroughputUnit::kNotKnown && profile.points.empty();
}

// By a run that has not ended. Far from the end of time: others add to it.
constexpr std::chrono::system_clock::time_point kUsedNow{std::chrono::hours(24 * 365 * 200)};

// A GPU reads its memory, of 1 TB, a few times a second: no training has more samples than that many bytes, or steps
// that take less than ten microseconds.
constexpr double kMostSamplesOfGpu = 1e9, kMostStepsOfGpu = 1e5;

kube::Status CheckPlausible(const std::vector<ProfilePoint>& points, api::ThroughputUnit unit) {
  const bool has_samples =
      unit == api::ThroughputUnit::kSamplesPerSecond || unit == api::ThroughputUnit::kTokensPerSecond;
  const double most = has_samples ? kMostSamplesOfGpu : kMostStepsOfGpu;
  for (const ProfilePoint& point : points) {
    const auto throughput = ThroughputOf(point.measured);
    if (throughput && throughput->mean <= most * std::max(1, point.config.gpus)) continue;
    return kube::Error(ErrorCode::kInvalidArgument, "a speed of " + point.measured.throughput + " " +
                                                        std::string(UnitText(unit)) + " on " + ToText(point.config) +
                                                        " is not possible");
  }
  return {};
}

// An API server whose CRD is older takes no runs or co-runs, and says nothing.
kube::Status CheckKept(const WorkloadProfile& written, bool has_runs, bool has_co_runs) {
  const bool lacks_runs = has_runs && written.spec.runs.empty();
  const bool lacks_co_runs = has_co_runs && written.spec.co_runs.empty();
  if (!lacks_runs && !lacks_co_runs) return {};
  const std::string what = lacks_runs ? "runs" : "co-runs";
  constexpr char kOld[] = "the CustomResourceDefinition of WorkloadProfile is older than grus and keeps no ";
  return kube::Error(ErrorCode::kInvalid, kOld + what + ": update it");
}

// kConflict if somebody created or deleted the profile meanwhile: the next try reads it again.
kube::Error Retried(const kube::Error& error) {
  const bool has_changed = error.code() == ErrorCode::kAlreadyExists || error.code() == ErrorCode::kNotFound;
  return has_changed ? kube::Error(ErrorCode::kConflict, error.message()) : error;
}

}  // namespace

KnownSpeeds ProfileStore::Find(const std::string& fingerprint, std::chrono::seconds max_age, kube::Time now) const {
  KnownSpeeds known;
  const auto profile = profiles_.Get<WorkloadProfile>({"", fingerprint});
  if (!profile || profile->metadata.is_being_deleted()) return known;
  known.unit = profile->spec.throughput_unit;
  for (const ProfilePoint& point : profile->spec.points) {
    if (now.value - point.time.value > max_age) continue;
    for (const api::TrialConfig& config : {point.config, WithoutNodes(point.config)}) {
      const auto [at, is_new] = known.points.emplace(config, point);
      if (!is_new && at->second.time < point.time) at->second = point;
    }
  }
  return known;
}

kube::Status ProfileStore::Save(const NewSpeeds& speeds, std::stop_token stop) {
  if (speeds.points.empty() && speeds.runs.empty() && speeds.co_runs.empty()) return {};
  if (kube::Status plausible = CheckPlausible(speeds.points, speeds.unit); !plausible) return plausible;
  kube::Status saved = Write(
      speeds.fingerprint, [&] { return TrySave(speeds, stop); }, stop);
  if (!saved) return std::move(saved).error().with("save measurements to WorkloadProfile " + speeds.fingerprint);
  return saved;
}

kube::Status ProfileStore::Write(const std::string& name, const std::function<kube::Status()>& attempt,
                                 std::stop_token stop) {
  {
    std::lock_guard lock(mutex_);
    being_written_.insert(name);
  }
  kube::Status written = kube::RetryOnConflict(clock_, attempt, std::move(stop), kube::kContended);
  std::lock_guard lock(mutex_);
  being_written_.erase(being_written_.find(name));
  return written;
}

bool ProfileStore::IsBeingWritten(const std::string& name) const {
  std::lock_guard lock(mutex_);
  return being_written_.contains(name);
}

kube::Status ProfileStore::TrySave(const NewSpeeds& speeds, std::stop_token stop) {
  const kube::ObjectKey key{"", speeds.fingerprint};
  const kube::Kind& kind = KindOf<WorkloadProfile>();
  auto found = client_.Get<WorkloadProfile>(key, stop);
  if (!found && found.error().code() != ErrorCode::kNotFound) return std::move(found).error();
  if (!found) {
    if (const Profile one = FindOneToGo(speeds.workload.ns)) {
      if (kube::Status deleted = Delete(*one, stop); !deleted) return deleted;
    }
    const api::WorkloadProfileSpec spec{.fingerprint = speeds.fingerprint,
                                        .workload = speeds.workload,
                                        .throughput_unit = speeds.unit,
                                        .points = MergePoints({}, speeds.points),
                                        .runs = speeds.runs,
                                        .features = FeaturesOf(speeds.runs),
                                        .co_runs = MergeCoRuns({}, speeds.co_runs)};
    Json labels = Json::MakeObject({{kManagedByLabel, kManagedBy}});
    const Json object =
        Json::MakeObject({{"apiVersion", kind.ApiVersion()},
                          {"kind", kind.kind},
                          {"metadata", Json::MakeObject({{"name", speeds.fingerprint}, {"labels", std::move(labels)}})},
                          {"spec", kube::ToJson(spec)}});
    const auto made = client_.Create(kind, "", object, {}, stop);
    if (!made) return Retried(made.error());
    const auto& profile = static_cast<const WorkloadProfile&>(**made);
    if (kube::Status kept = CheckKept(profile, !spec.runs.empty(), !spec.co_runs.empty()); !kept) return kept;
    return WriteStatus(profile, std::nullopt, stop);
  }
  const Profile profile = *std::move(found);
  if (profile->metadata.is_being_deleted()) return kube::Error(ErrorCode::kConflict, "it is being deleted");
  const bool is_other_unit = !speeds.points.empty() && profile->spec.throughput_unit != speeds.unit;
  if (is_other_unit && !IsWithoutUnit(profile->spec)) {
    return kube::Error(ErrorCode::kInvalidArgument, "it counts in " + UnitName(profile->spec.throughput_unit) +
                                                        ", these measurements in " + UnitName(speeds.unit) +
                                                        "; delete the profile if its unit is wrong");
  }
  const kube::Result<Profile> written = WriteNew(profile, speeds, stop);
  if (!written) return written.error();
  return WriteStatus(**written, (*written)->status.drift, stop);
}

kube::Status ProfileStore::Edit(const std::string& name, const Editor& edit, std::stop_token stop) {
  kube::Status edited = Write(
      name, [&] { return TryEdit(name, edit, stop); }, stop);
  if (!edited) return std::move(edited).error().with("update WorkloadProfile " + name);
  return edited;
}

kube::Status ProfileStore::TryEdit(const std::string& name, const Editor& edit, std::stop_token stop) {
  auto found = client_.Get<WorkloadProfile>({"", name}, stop);
  if (!found && found.error().code() == ErrorCode::kNotFound) return {};
  if (!found) return std::move(found).error();
  const Profile profile = *std::move(found);
  if (profile->metadata.is_being_deleted()) return {};
  const ProfileEdit wanted = edit(*profile);
  if (auto plausible = CheckPlausible(wanted.points, profile->spec.throughput_unit); !plausible) return plausible;
  NewSpeeds added;
  added.unit = profile->spec.throughput_unit;
  added.points = wanted.points;
  added.co_runs = wanted.co_runs;
  const kube::Result<Profile> written = WriteNew(profile, added, stop);
  if (!written) return written.error();
  return WriteStatus(**written, wanted.drift, stop);
}

kube::Result<ProfileStore::Profile> ProfileStore::WriteNew(const Profile& profile, const NewSpeeds& added,
                                                           std::stop_token stop) {
  const std::vector<ProfilePoint> points = MergePoints(profile->spec.points, added.points);
  std::vector<api::WorkloadRun> runs = profile->spec.runs;
  for (const api::WorkloadRun& run : added.runs) runs = MergeRun(std::move(runs), run);
  Json spec = Json::MakeObject();
  if (points != profile->spec.points) {
    spec["points"] = ListOf(points);
    if (IsWithoutUnit(profile->spec)) spec["throughputUnit"] = UnitName(added.unit);
  }
  if (runs != profile->spec.runs) {
    spec["runs"] = ListOf(runs);
    spec["features"] = ListOf(FeaturesOf(runs));
  }
  const std::vector<api::CoRun> co_runs = MergeCoRuns(profile->spec.co_runs, added.co_runs);
  if (co_runs != profile->spec.co_runs) spec["coRuns"] = ListOf(co_runs);
  if (spec.AsObject()->empty()) return profile;
  Json patch = Json::MakeObject();
  // Refused with kConflict if the profile has changed since it was read, or was deleted and created again.
  patch["metadata"] =
      Json::MakeObject({{"resourceVersion", profile->metadata.resource_version}, {"uid", profile->metadata.uid}});
  patch["spec"] = std::move(spec);
  auto written =
      client_.Patch(KindOf<WorkloadProfile>(), profile->metadata.Key(), kube::PatchType::kMerge, patch, {}, stop);
  if (!written) return Retried(written.error());
  Profile now = std::static_pointer_cast<const WorkloadProfile>(*std::move(written));
  if (kube::Status kept = CheckKept(*now, !added.runs.empty(), !co_runs.empty()); !kept) return std::move(kept).error();
  return now;
}

kube::Status ProfileStore::WriteStatus(const WorkloadProfile& profile, const std::optional<api::ProfileDrift>& drift,
                                       std::stop_token stop) {
  WorkloadProfile drifted = profile;
  drifted.status.drift = drift;
  const api::WorkloadProfileStatus status = ProfileStatusOf(drifted, clock_.WallNow());
  // The status was computed from the points of this version.
  StatusChange change{kube::ToJson(profile.status), kube::ToJson(status), false, profile.metadata.resource_version};
  const auto written = statuses_.Write(KindOf<WorkloadProfile>(), profile.metadata, std::move(change), {}, stop);
  if (!written) return Retried(written.error());
  return {};
}

int ProfileStore::WritesOf(const std::string& fingerprint, const std::string& ns) const {
  constexpr int kProfileAndStatus = 2;
  const bool is_new = profiles_.Get<WorkloadProfile>({"", fingerprint}) == nullptr;
  return kProfileAndStatus + (is_new && FindOneToGo(ns) ? 1 : 0);
}

ProfileStore::Profile ProfileStore::FindOneToGo(const std::string& ns) const {
  std::map<std::string, std::vector<Profile>> by_namespace;
  std::size_t count = 0;
  const auto all = profiles_.List<WorkloadProfile>();
  for (const auto& profile : all) {
    if (!IsMadeByGrus(*profile)) continue;
    by_namespace[profile->spec.workload.ns].push_back(profile);
    ++count;
  }
  auto from = by_namespace.find(ns);
  const bool is_full = !ns.empty() && from != by_namespace.end() && from->second.size() >= kMostOfNamespace;
  if (!is_full && count < kMostProfiles) return nullptr;
  if (!is_full) from = std::ranges::max_element(by_namespace, {}, [](const auto& one) { return one.second.size(); });
  return *std::ranges::min_element(
      from->second, {}, [](const Profile& one) { return std::tuple(!one->spec.points.empty(), LastUsed(*one)); });
}

kube::Status ProfileStore::Delete(const WorkloadProfile& profile, std::stop_token stop) {
  kube::DeleteOptions options;
  options.uid = profile.metadata.uid;
  options.resource_version = profile.metadata.resource_version;  // Measured again, it stays.
  kube::Status deleted = client_.Delete(KindOf<WorkloadProfile>(), profile.metadata.Key(), options, std::move(stop));
  const bool is_gone =
      !deleted && (deleted.error().code() == ErrorCode::kNotFound || deleted.error().code() == ErrorCode::kConflict);
  return is_gone ? kube::Status() : deleted;
}

bool IsMadeByGrus(const WorkloadProfile& profile) { return profile.metadata.Label(kManagedByLabel) == kManagedBy; }

kube::Time LastUsed(const WorkloadProfile& profile) {
  kube::Time last = profile.metadata.creation_timestamp.value_or(kube::Time{});
  for (const ProfilePoint& point : profile.spec.points) last = std::max(last, point.time);
  for (const api::WorkloadRun& run : profile.spec.runs) last = std::max(last, run.end.value_or(kube::Time{kUsedNow}));
  return last;
}

std::string PointName(const api::TrialConfig& config) {
  return (config.gpu_type.empty() ? "" : config.gpu_type + "-") + std::to_string(config.gpus) + "g-" +
         std::to_string(config.nodes) + "n-" + std::to_string(config.batch_size) + "b" +
         (config.min_nodes > 0 ? "-spread" : "");
}

std::vector<ProfilePoint> MergePoints(std::vector<ProfilePoint> points, const std::vector<ProfilePoint>& added,
                                      std::size_t limit) {
  for (ProfilePoint point : added) {
    point.name = PointName(point.config);
    // In the API's precision, so that the same point saved again is not newer.
    point.time.value = std::chrono::floor<std::chrono::seconds>(point.time.value);
    const api::TrialConfig anywhere = WithoutNodes(point.config);
    const auto is_same = [&](const ProfilePoint& other) {
      return other.config == point.config || other.name == point.name ||
             (other.config == anywhere && other.time < point.time);
    };
    const auto same = std::find_if(points.begin(), points.end(), is_same);
    if (same == points.end()) {
      points.push_back(std::move(point));
      continue;
    }
    const bool is_old = std::any_of(
        same, points.end(), [&](const ProfilePoint& other) { return is_same(other) && other.time >= point.time; });
    if (is_old) continue;
    const auto at = same - points.begin();
    points.erase(std::remove_if(same, points.end(), is_same), points.end());
    points.insert(points.begin() + at, std::move(point));
  }
  while (points.size() > limit) {
    points.erase(std::min_element(points.begin(), points.end(), [](const ProfilePoint& a, const ProfilePoint& b) {
      return std::tie(a.time, a.name) < std::tie(b.time, b.name);
    }));
  }
  return points;
}

}  // namespace grus

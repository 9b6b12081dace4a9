// SPDX-License-Identifier: Apache-2.0
#include "crds/types/workload_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/crds/schema_walk.h"

namespace api {
namespace {

using kube::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const kube::Kind& TheKind() { return WorkloadProfile::ResourceKind(); }
Json SchemaAt(std::initializer_list<std::string_view> fields) { return SchemaOf(TheKind(), fields); }

kube::Time Noon() { return *kube::ParseTime("2026-01-02T12:00:00Z"); }

ProfilePoint Point(std::string name) {
  ProfilePoint point;
  point.name = std::move(name);
  point.config = {"NVIDIA-A100-SXM4-80GB", 8, 2, 64};
  point.measured = {"812.4", "790.1", "835.0", "630.2", "613.0", "648.1", 120, 68719476736, 93};
  point.gpu_seconds = 840;
  point.measured_by = "team-a/bert";
  point.time = Noon();
  return point;
}

TEST(WorkloadProfile, AsManyPointsAsThereMayBeFitIntoAnObject) {
  // etcd takes requests of at most 1.5 MB; managedFields name every field of every point once more.
  constexpr std::size_t kRoom = 500'000;
  WorkloadProfile profile;
  ProfilePoint point = Point(std::string(128, 'p'));
  point.config.gpu_type = std::string(63, 'g');
  point.measured_by = std::string(63, 'n') + "/" + std::string(32, 't');
  profile.spec.points.assign(kMaxProfilePoints, point);

  EXPECT_LT(kube::EncodeObject(TheKind(), profile).size(), kRoom);
}

TEST(WorkloadProfileCrd, PointsMergeByTheirName) {
  // Two TrialJobs that add points at the same time keep each other's.
  const Json points = SchemaAt({"spec", "points"});
  EXPECT_EQ(At(points, {"x-kubernetes-list-type"}), Json("map"));
  EXPECT_EQ(At(points, {"x-kubernetes-list-map-keys"}), Json::MakeArray({"name"}));
}

TEST(WorkloadProfileCrd, RulesKeepTheIdentity) {
  EXPECT_THAT(RulesOf(SchemaAt({})), HasSubstr("metadata.name must be spec.fingerprint"));
  EXPECT_THAT(RulesOf(SchemaAt({"spec", "fingerprint"})), HasSubstr("must not change"));
  EXPECT_THAT(RulesOf(SchemaAt({"spec", "workload"})), HasSubstr("must not change"));
  EXPECT_THAT(RulesOf(SchemaAt({"spec", "throughputUnit"})), HasSubstr("must not change"));
}

TEST(WorkloadProfileCrd, EveryListHasALimit) { EXPECT_THAT(FieldsThat(TheKind(), IsListWithoutLimit), IsEmpty()); }

}  // namespace
}  // namespace api

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

std::shared_ptr<WorkloadProfile> Read(std::string_view text) {
  auto profile = kube::Decode<WorkloadProfile>(text);
  EXPECT_TRUE(profile) << profile.error().message();
  return profile ? *profile : std::make_shared<WorkloadProfile>();
}

TEST(WorkloadProfile, IsReadBackAsItWasWritten) {
  WorkloadProfile profile;
  profile.metadata.name = "bert-3fa9";
  WorkloadProfileSpec& spec = profile.spec;
  spec.fingerprint = "bert-3fa9";
  spec.workload.image = "train@sha256:12";
  spec.workload.command = {"python", "train.py"};
  spec.workload.args = {"--epochs", "1"};
  spec.workload.resources["cpu"] = *kube::ParseQuantity("8");
  spec.workload.gpus_per_worker = 2;
  spec.workload.model = "bert";
  spec.workload.dataset = "squad";
  spec.throughput_unit = ThroughputUnit::kBatchesPerSecond;
  spec.points = {Point("8g"), Point("16g")};
  WorkloadProfileStatus& status = profile.status;
  status.observed_generation = 2;
  status.gpus = "a100";
  status.knee = "8";
  status.points = 2;
  status.gpu_types = {{{"a100", "Amdahl", {{"serialPercent", "3"}}, "4.2", 32}, 2, 8}};
  status.drift = ProfileDrift{"team-a/bert", {"a100", 8, 2, 64}, {}, {}, Noon()};
  status.drift->expected.throughput = "800";
  status.drift->observed.throughput = "500.5";
  status.conditions.push_back({"Ready", "True", "Modelled", "2 points", Noon(), 2});

  const std::string text = kube::EncodeObject(TheKind(), profile);
  const auto read = Read(text);
  EXPECT_EQ(read->spec.workload, spec.workload) << text;
  EXPECT_EQ(read->spec.points, spec.points) << text;
  EXPECT_EQ(read->spec.fingerprint, spec.fingerprint);
  EXPECT_EQ(read->spec.throughput_unit, spec.throughput_unit);
  EXPECT_EQ(read->status, status) << text;
}

TEST(WorkloadProfile, WrongValuesAreNamedByTheirField) {
  const std::pair<const char*, const char*> kCases[] = {
      {R"({"spec":{"points":[{"time":"yesterday"}]}})", "spec.points[0].time"},
      {R"({"spec":{"points":[{"measured":{"throughput":1.5}}]}})", "spec.points[0].measured.throughput"},
      {R"({"spec":{"throughputUnit":"Furlongs"}})", "spec.throughputUnit"},
      {R"({"spec":{"workload":{"command":"python"}}})", "spec.workload.command"},
  };
  for (const auto& [text, field] : kCases) {
    const auto profile = kube::Decode<WorkloadProfile>(text);
    ASSERT_FALSE(profile) << text;
    EXPECT_THAT(profile.error().message(), HasSubstr(field));
  }
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

TEST(WorkloadProfileCrd, NoNumberIsAFloat) { EXPECT_THAT(FieldsThat(TheKind(), IsFloat), IsEmpty()); }

TEST(WorkloadProfileCrd, EveryListHasALimit) { EXPECT_THAT(FieldsThat(TheKind(), IsListWithoutLimit), IsEmpty()); }

}  // namespace
}  // namespace api

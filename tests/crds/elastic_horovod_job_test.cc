// SPDX-License-Identifier: Apache-2.0
#include "crds/types/elastic_horovod_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/crds/crd_json.h"

namespace api {
namespace {

using kube::Json;
using ::testing::ElementsAre;

const kube::Kind& TheKind() { return ElasticHorovodJob::ResourceKind(); }
Json Version() { return VersionOf(TheKind()); }
Json SchemaAt(std::initializer_list<std::string_view> fields) { return SchemaOf(TheKind(), fields); }

// A manifest as the original Alnair's users have it.
constexpr char kOriginal[] = R"({
  "apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"ElasticHorovodJob",
  "metadata":{"name":"elastic-job","namespace":"default","labels":{"job":"elastic"}},
  "spec":{
    "launcherSpec":{"image":"horovod/horovod:0.21.0","pythonCommand":["python","/examples/elastic/train.py"]},
    "workersSpec":{"image":"horovod/horovod:0.21.0","minReplicas":2,"maxReplicas":4,"targetReplicas":3},
    "containers":[{"volumeMounts":[{"name":"data","mountPath":"/data"}]}],
    "volumes":[{"name":"data","hostPath":{"path":"/mnt/data"}}]}})";

TEST(ElasticHorovodJob, AManifestOfTheOriginalIsRead) {
  const auto job = kube::Decode<ElasticHorovodJob>(kOriginal);
  ASSERT_TRUE(job) << job.error().message();
  const ElasticHorovodJobSpec& spec = (*job)->spec;
  EXPECT_EQ(spec.launcher.image, "horovod/horovod:0.21.0");
  EXPECT_THAT(spec.launcher.python_command, ElementsAre("python", "/examples/elastic/train.py"));
  EXPECT_EQ(spec.workers.min_replicas, 2);
  EXPECT_EQ(spec.workers.max_replicas, 4);
  EXPECT_EQ(spec.workers.target_replicas, 3);
  EXPECT_EQ(spec.containers.size(), 1U);
  EXPECT_EQ(spec.volumes.size(), 1U);
}

TEST(ElasticHorovodJob, WhatTheOriginalDidNotKnowHasADefault) {
  const auto job = kube::Decode<ElasticHorovodJob>(kOriginal);
  ASSERT_TRUE(job);
  const ElasticHorovodJobSpec& spec = (*job)->spec;
  EXPECT_EQ(spec.workers.gpus_per_worker, 1);
  EXPECT_FALSE(spec.run_policy.suspend);
  EXPECT_EQ(spec.run_policy.clean_pod_policy, CleanPodPolicy::kRunning);
  EXPECT_EQ(spec.run_policy.backoff_limit, 1);
  EXPECT_EQ(spec.elastic.unschedulable_grace_seconds, 15);
  EXPECT_TRUE(spec.elastic.scale_up);
  EXPECT_EQ(spec.elastic.cooldown_seconds, 30);
  EXPECT_EQ(spec.elastic.shrink_grace_seconds, 30);
  EXPECT_EQ(spec.workload_class, WorkloadClass::kUnattended);
  EXPECT_EQ(spec.profile, "Auto");
  EXPECT_TRUE(spec.workers.pod_template.is_null());
}

TEST(ElasticHorovodJob, TheSchemasDefaultsAreThoseOfTheTypes) {
  const auto value = [&](std::initializer_list<std::string_view> field) {
    const Json schema = SchemaAt(field);
    const Json* found = schema.Find("default");
    return found ? *found : Json();
  };
  const ElasticHorovodJobSpec spec;
  EXPECT_EQ(value({"spec", "workersSpec", "gpusPerWorker"}), Json(spec.workers.gpus_per_worker));
  EXPECT_EQ(value({"spec", "runPolicy", "suspend"}), Json(spec.run_policy.suspend));
  EXPECT_EQ(value({"spec", "runPolicy", "cleanPodPolicy"}), Json("Running"));
  EXPECT_EQ(value({"spec", "runPolicy", "backoffLimit"}), Json(spec.run_policy.backoff_limit));
  EXPECT_EQ(value({"spec", "elastic", "unschedulableGraceSeconds"}), Json(spec.elastic.unschedulable_grace_seconds));
  EXPECT_EQ(value({"spec", "elastic", "scaleUp"}), Json(spec.elastic.scale_up));
  EXPECT_EQ(value({"spec", "elastic", "cooldownSeconds"}), Json(spec.elastic.cooldown_seconds));
  EXPECT_EQ(value({"spec", "elastic", "shrinkGraceSeconds"}), Json(spec.elastic.shrink_grace_seconds));
  EXPECT_EQ(value({"spec", "workloadClass"}), Json("Unattended"));
  EXPECT_EQ(value({"spec", "profile"}), Json(spec.profile));
  // Without these two no default below them would ever be filled in.
  EXPECT_EQ(value({"spec", "runPolicy"}), Json::MakeObject());
  EXPECT_EQ(value({"spec", "elastic"}), Json::MakeObject());
}

TEST(ElasticHorovodJob, TheReplicaCountsHaveNoDefault) {
  // A default target would take the choice from the allocator.
  for (const char* field : {"minReplicas", "maxReplicas", "targetReplicas"}) {
    EXPECT_EQ(SchemaAt({"spec", "workersSpec", field}).Find("default"), nullptr) << field;
    EXPECT_EQ(At(SchemaAt({"spec", "workersSpec", field}), {"minimum"}), Json(0)) << field;
  }
}

TEST(ElasticHorovodJob, OnlyWhatTheOriginalRequiredIsRequired) {
  const auto required = [](std::initializer_list<std::string_view> field) {
    const Json schema = SchemaAt(field);
    const Json* found = schema.Find("required");
    return found ? *found : Json();
  };
  EXPECT_EQ(required({"spec"}), Json::MakeArray({"launcherSpec", "workersSpec"}));
  EXPECT_EQ(required({"spec", "launcherSpec"}), Json::MakeArray({"image", "pythonCommand"}));
  EXPECT_EQ(required({"spec", "workersSpec"}), Json::MakeArray({"image"}));
  EXPECT_TRUE(required({"spec", "runPolicy"}).is_null());
  EXPECT_TRUE(required({"spec", "elastic"}).is_null());
}

TEST(ElasticHorovodJob, TemplatesAreTakenAsTheyAre) {
  for (const char* spec : {"launcherSpec", "workersSpec"}) {
    EXPECT_EQ(At(SchemaAt({"spec", spec, "template"}), {"x-kubernetes-preserve-unknown-fields"}), Json(true)) << spec;
  }
}

TEST(ElasticHorovodJobCrd, KubectlScaleSetsTheTarget) {
  EXPECT_EQ(At(Version(), {"subresources", "scale"}),
            Json::MakeObject({{"specReplicasPath", ".spec.workersSpec.targetReplicas"},
                              {"statusReplicasPath", ".status.availableReplicas"},
                              {"labelSelectorPath", ".status.selector"}}));
  EXPECT_TRUE(At(Version(), {"subresources", "status"}).is_object());
}

}  // namespace
}  // namespace api

// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/workload_fingerprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "clientlib/model/json_reader.h"

namespace grus {
namespace {

constexpr char kDigest[] = "sha256:aaaa", kOtherDigest[] = "sha256:bbbb";

constexpr char kSpec[] = R"({
  "launcherSpec": {"image": "example.com/bert:1", "pythonCommand": ["python", "train.py", "--lr=0.1"]},
  "workersSpec": {"image": "example.com/bert:1", "template": {"spec": {"containers": [{"name": "worker",
    "env": [{"name": "NCCL_ALGO", "value": "Ring"}, {"name": "OMP_NUM_THREADS", "value": "4"}],
    "resources": {"limits": {"cpu": "4", "memory": "16Gi"}}}]}}}})";

api::ElasticHorovodJobSpec Spec(const std::string& text) {
  const auto spec = kube::ReadText<api::ElasticHorovodJobSpec>(text);
  EXPECT_TRUE(spec) << spec.error().message();
  return *spec;
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

kube::ObjectMeta In(const std::string& ns, const kube::StringMap& annotations = {}) {
  kube::ObjectMeta metadata;
  metadata.ns = ns;
  metadata.annotations = annotations;
  return metadata;
}

constexpr ProfileTrust kOwn = ProfileTrust::kNamespace, kAll = ProfileTrust::kCluster;

std::string Fingerprint(const std::string& text) { return IdentityOf(Spec(text), In("a"), kOwn).fingerprint; }

TEST(WorkloadFingerprint, IsALegalObjectName) {
  EXPECT_THAT(Fingerprint(kSpec), testing::MatchesRegex("[0-9a-f]{32}"));
}

TEST(WorkloadFingerprint, TheGpusThatTheTemplateAsksForCount) {
  const std::string stated = Replaced(kSpec, R"("cpu": "4")", R"("cpu": "4", "nvidia.com/gpu": "8")");
  EXPECT_NE(Fingerprint(kSpec), Fingerprint(stated));
  EXPECT_EQ(Fingerprint(stated), Fingerprint(Replaced(kSpec, R"("template")", R"("gpusPerWorker": 8, "template")")));
}

TEST(WorkloadFingerprint, IsTheSameHoweverTheSameThingIsWritten) {
  struct Case {
    const char *what, *by, *why;
  };
  const Case cases[] = {
      {R"("cpu": "4", "memory": "16Gi")", R"("memory": "16Gi", "cpu": "4")", "order of fields"},
      {R"("cpu": "4")", R"("cpu": 4)", "a number for a text"},
      {R"("cpu": "4")", R"("cpu": "4000m")", "another unit"},
      {R"("16Gi")", R"("17179869184")", "another unit"},
      {R"("resources": {)", R"("resources": {"requests": {"cpu": "4", "memory": "16Gi"}, )", "requests as limits"},
      {R"("cpu": "4")", R"("cpu": "4", "nvidia.com/gpu": "1")", "GPUs, which gpusPerWorker says"},
      {R"({"name": "NCCL_ALGO", "value": "Ring"}, {"name": "OMP_NUM_THREADS", "value": "4"})",
       R"({"name": "OMP_NUM_THREADS", "value": "4"}, {"name": "NCCL_ALGO", "value": "Ring"})", "order of variables"},
      {R"("env": [)", R"("env": [{"name": "RUN_ID", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}, )",
       "a variable without a value of its own"},
      {R"("template")", R"("gpusPerWorker": 1, "template")", "a default"},
      {R"("template")", R"("minReplicas": 2, "maxReplicas": 8, "template")", "another size"},
      {R"(["python", "train.py", "--lr=0.1"])", R"(["python train.py", "--lr=0.1"])", "what the shell joins"},
      {R"({"image": "example.com/bert:1", "python)", R"({"image": "example.com/launcher:9", "python)", "the launcher"},
      {R"("launcherSpec")", R"("queueName": "night", "profile": "Off", "launcherSpec")", "a queue"},
  };
  for (const Case& c : cases) EXPECT_EQ(Fingerprint(Replaced(kSpec, c.what, c.by)), Fingerprint(kSpec)) << c.why;
}

TEST(WorkloadFingerprint, IsAnotherForAllThatMayChangeTheSpeed) {
  struct Case {
    const char *what, *by;
  };
  const Case cases[] = {
      {R"("workersSpec": {"image": "example.com/bert:1")", R"("workersSpec": {"image": "example.com/bert:2")"},
      {"--lr=0.1", "--fp16"},
      {R"("cpu": "4")", R"("cpu": "8")"},
      {R"("16Gi")", R"("32Gi")"},
      {R"("limits": {"cpu": "4")", R"("requests": {"cpu": "2"}, "limits": {"cpu": "4")"},
      {R"("Ring")", R"("Tree")"},
      {R"("OMP_NUM_THREADS")", R"("MKL_NUM_THREADS")"},
      {R"("template")", R"("gpusPerWorker": 2, "template")"},
  };
  std::set<std::string> seen = {Fingerprint(kSpec)};
  for (const Case& c : cases) {
    EXPECT_TRUE(seen.insert(Fingerprint(Replaced(kSpec, c.what, c.by))).second) << c.by;
  }
}

TEST(WorkloadFingerprint, AnnotationsTellModelsAndDataSetsApart) {
  const auto fingerprint = [](const kube::StringMap& annotations) {
    return IdentityOf(Spec(kSpec), In("a", annotations), kOwn).fingerprint;
  };
  EXPECT_NE(fingerprint({{kModelAnnotation, "bert-base"}}), fingerprint({{kModelAnnotation, "bert-large"}}));
  EXPECT_NE(fingerprint({{kDatasetAnnotation, "a"}}), fingerprint({{kModelAnnotation, "a"}}));
  EXPECT_EQ(fingerprint({{"example.com/team", "a"}}), fingerprint({}));
}

TEST(WorkloadFingerprint, AnImageIsItsDigestWhereThatIsKnown) {
  const auto of = [](const std::string& image, std::string_view digest) {
    api::ElasticHorovodJobSpec spec = Spec(kSpec);
    spec.workers.image = image;
    return IdentityOf(spec, In("a"), kOwn, digest);
  };
  const std::string known = of("example.com/bert:1", kDigest).fingerprint;
  EXPECT_EQ(of("example.com/bert@sha256:aaaa", "").fingerprint, known);
  EXPECT_EQ(of("mirror.example.com/bert:1@sha256:aaaa", "").fingerprint, known);
  EXPECT_EQ(of("example.com/bert:2", "docker.io/bert@sha256:aaaa").fingerprint, known);  // A pod's imageID.
  EXPECT_EQ(of("example.com/bert@sha256:aaaa", kOtherDigest).fingerprint,
            known);  // What the image names wins.
  EXPECT_NE(of("example.com/bert:1", kOtherDigest).fingerprint, known);
  EXPECT_EQ(of("example.com/bert:1", "unheard of").fingerprint, of("example.com/bert:1", "").fingerprint);
  EXPECT_EQ(of("example.com/bert:1", kDigest).workload.image, "example.com/bert:1@sha256:aaaa");
}

TEST(WorkloadIdentity, SaysWhatTheWorkloadIsButNotItsEnvironment) {
  const api::ProfiledWorkload workload = IdentityOf(Spec(kSpec), In("a", {{kModelAnnotation, "bert"}}), kOwn).workload;
  EXPECT_EQ(workload.image, "example.com/bert:1");
  EXPECT_THAT(workload.command, testing::ElementsAre("python", "train.py", "--lr=0.1"));
  EXPECT_EQ(workload.resources.at("memory"), kube::Quantity(std::int64_t{16} << 30));
  EXPECT_EQ(workload.model, "bert");
}

TEST(WorkloadIdentity, TemplatesThatAreNoneAreNoError) {
  for (const char* text : {"null", "[]", "7", R"({"spec":{"containers":[7,{"name":"worker","resources":[],"env":7}]}})",
                           R"({"spec":{"containers":[{"name":"worker","resources":{"limits":{"cpu":"many"}}}]}})"}) {
    api::ElasticHorovodJobSpec spec = Spec(kSpec);
    spec.workers.pod_template = *kube::ParseJson(text);
    EXPECT_EQ(IdentityOf(spec, In("a"), kOwn).workload.resources.size(), 0u) << text;
  }
}

TEST(JobProfileOf, HasTheKneeOfTheGpuTypeThatTheJobRunsOn) {
  api::WorkloadProfile profile;
  profile.metadata.name = "p";
  const auto add = [&](const char* gpu_type, std::optional<int> knee) {
    api::GpuTypeProfile& type = profile.status.gpu_types.emplace_back();
    type.model.gpu_type = gpu_type;
    type.knee_gpus = knee;
  };
  api::ElasticHorovodJob anywhere, on_h100;
  on_h100.spec.workers.pod_template =
      *kube::ParseJson(R"({"spec":{"nodeSelector":{"nvidia.com/gpu.product":"H100"}}})");
  EXPECT_EQ(JobProfileOf(profile, anywhere), (api::JobProfile{"p", {}}));
  add("A100", 8);
  EXPECT_EQ(JobProfileOf(profile, anywhere), (api::JobProfile{"p", 8}));
  EXPECT_EQ(JobProfileOf(profile, on_h100), (api::JobProfile{"p", {}}));
  add("H100", 16);
  EXPECT_EQ(JobProfileOf(profile, anywhere), (api::JobProfile{"p", {}}));
  EXPECT_EQ(JobProfileOf(profile, on_h100), (api::JobProfile{"p", 16}));
}

// S4: what one namespace measured is nothing to another, unless an administrator says so.
TEST(WorkloadFingerprint, NamespacesAreToldApartUnlessTheyTrustEachOther) {
  const auto of = [](const char* ns, ProfileTrust trust) { return IdentityOf(Spec(kSpec), In(ns), trust); };
  EXPECT_NE(of("a", kOwn).fingerprint, of("b", kOwn).fingerprint);
  EXPECT_EQ(of("a", kOwn).workload.ns, "a");
  EXPECT_EQ(of("a", kAll).fingerprint, of("b", kAll).fingerprint);
  EXPECT_EQ(of("a", kAll).workload.ns, "");
  const kube::Json pod = *kube::ParseJson(R"({"spec":{"containers":[{"name":"t","image":"i"}]}})");
  EXPECT_NE(IdentityOfPod(pod, In("a"), kOwn).fingerprint, IdentityOfPod(pod, In("b"), kOwn).fingerprint);
  EXPECT_EQ(IdentityOfPod(pod, In("a"), kAll).fingerprint, IdentityOfPod(pod, In("b"), kAll).fingerprint);
}

// The training may lie in a volume: the same command is then another one.
TEST(WorkloadFingerprint, VolumesAndTheirPlacesCountAndTheOrderOfTheirFieldsDoesNot) {
  const auto of = [](const char* more) {
    api::ElasticHorovodJobSpec spec = Spec(kSpec);
    spec.workers.pod_template = *kube::ParseJson(R"({"spec":{"containers":[{"name":"worker"}]}})");
    kube::MergePatch(spec.workers.pod_template, *kube::ParseJson(more));
    return IdentityOf(spec, In("a"), kOwn).fingerprint;
  };
  const std::string one = of(R"({"spec":{"volumes":[{"name":"code","configMap":{"name":"v1"}}]}})");
  EXPECT_NE(one, of("{}"));
  EXPECT_NE(one, of(R"({"spec":{"volumes":[{"name":"code","configMap":{"name":"v2"}}]}})"));
  EXPECT_EQ(one, of(R"({"spec":{"volumes":[{"configMap":{"name":"v1"},"name":"code"}]}})"));
  EXPECT_NE(of(R"({"spec":{"containers":[{"name":"worker","volumeMounts":[{"name":"code","mountPath":"/a"}]}]}})"),
            of(R"({"spec":{"containers":[{"name":"worker","volumeMounts":[{"name":"code","mountPath":"/b"}]}]}})"));
}

TEST(IsFor, AProfileIsForItsNamespaceOrForAll) {
  api::WorkloadProfile profile;
  EXPECT_TRUE(IsFor(profile, "a"));
  profile.spec.workload.ns = "a";
  EXPECT_TRUE(IsFor(profile, "a"));
  EXPECT_FALSE(IsFor(profile, "b"));
}

TEST(IsOf, WhatAJobMeasuresBelongsToItsOwnWorkloadWhateverProfileItNames) {
  api::ElasticHorovodJob job;
  job.metadata.ns = "a";
  job.spec = Spec(kSpec);
  job.spec.profile = "by-hand";
  api::WorkloadProfile profile;
  profile.metadata.name = "by-hand";
  profile.spec.fingerprint = Fingerprint(kSpec);
  EXPECT_TRUE(IsOf(profile, job, kOwn));
  job.metadata.ns = "b";
  EXPECT_FALSE(IsOf(profile, job, kOwn));
}

TEST(ProfileNameOf, FollowsTheSpec) {
  api::ElasticHorovodJob job;
  job.metadata.ns = "a";
  job.spec = Spec(kSpec);
  EXPECT_EQ(ProfileNameOf(job, kOwn), Fingerprint(kSpec));
  job.spec.profile = "Off";
  EXPECT_EQ(ProfileNameOf(job, kOwn), std::nullopt);
  job.spec.profile = "bert-by-hand";
  EXPECT_EQ(ProfileNameOf(job, kOwn), "bert-by-hand");
}

constexpr char kPod[] =
    R"({"metadata": {"annotations": {"ai.centauruscloud.io/dataset": "web"}}, "spec": {"containers": [
    {"name": "side", "image": "s"},
    {"name": "train", "image": "example.com/bert:1", "command": ["torchrun"], "args": ["train.py", "--lr=0.1"],
     "env": [{"name": "NCCL_ALGO", "value": "Ring"}],
     "resources": {"limits": {"cpu": "4", "nvidia.com/gpu": "1"}}}]}})";

std::string PodFingerprint(const std::string& text) {
  const auto pod = kube::ParseJson(text);
  EXPECT_TRUE(pod) << text;
  return IdentityOfPod(*pod, In("a"), kOwn).fingerprint;
}

TEST(PodFingerprint, IsThatOfTheContainerThatTrainsWithoutItsGpus) {
  for (const auto& [what, by] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"("image": "s")", R"("image": "other")"},
           {R"("nvidia.com/gpu": "1")", R"("nvidia.com/gpu": "8")"},
           {R"("cpu": "4")", R"("cpu": "4000m")"},
           {R"("spec": {)", R"("spec": {"nodeSelector": {"a": "b"}, )"}}) {
    EXPECT_EQ(PodFingerprint(Replaced(kPod, what, by)), PodFingerprint(kPod)) << by;
  }
}

TEST(PodFingerprint, IsAnotherForAllThatMayChangeTheSpeed) {
  std::set<std::string> seen = {PodFingerprint(kPod)};
  for (const auto& [what, by] : std::initializer_list<std::pair<const char*, const char*>>{
           {"bert:1", "bert:2"},
           {R"(["torchrun"])", R"(["python"])"},
           {"--lr=0.1", "--fp16"},
           {R"("command": ["torchrun"], "args": ["train.py", "--lr=0.1"])",
            R"("args": ["torchrun", "train.py", "--lr=0.1"])"},
           {R"("cpu": "4")", R"("cpu": "8")"},
           {"Ring", "Tree"},
           {R"("web")", R"("books")"}}) {
    EXPECT_TRUE(seen.insert(PodFingerprint(Replaced(kPod, what, by))).second) << by;
  }
}

TEST(WorkloadFingerprint, APartOfAGpuIsNoWholeOneAndEachSizeIsItsOwn) {
  std::set<std::string> of_jobs = {Fingerprint(kSpec)}, of_pods = {PodFingerprint(kPod)};
  for (const char* milli : {"300", "600"}) {
    const std::string part = std::string(R"("ai.centauruscloud.io/gpu-milli": ")") + milli + "\"";
    EXPECT_TRUE(of_jobs.insert(Fingerprint(Replaced(kSpec, R"("cpu": "4")", R"("cpu": "4", )" + part))).second)
        << milli;
    EXPECT_TRUE(of_pods.insert(PodFingerprint(Replaced(kPod, R"("nvidia.com/gpu": "1")", part))).second) << milli;
  }
  for (const char* mib : {"8192", "20480"}) {
    api::ElasticHorovodJobSpec spec =
        Spec(Replaced(kSpec, R"("cpu": "4")", R"("cpu": "4", "ai.centauruscloud.io/gpu-milli": "300")"));
    spec.workers.pod_template["metadata"]["annotations"]["sharing.ai.centauruscloud.io/memory-mib"] = mib;
    EXPECT_TRUE(of_jobs.insert(IdentityOf(spec, In("a"), kOwn).fingerprint).second) << mib;
    spec.workers.pod_template["metadata"]["annotations"]["sharing.ai.centauruscloud.io/paged-mib"] = "4096";
    EXPECT_TRUE(of_jobs.insert(IdentityOf(spec, In("a"), kOwn).fingerprint).second) << mib << ", and paged";
  }
}

TEST(PodFingerprint, ATemplateThatIsNoneHasOne) {
  EXPECT_THAT(IdentityOfPod(*kube::ParseJson("5"), In("a"), kOwn).fingerprint, testing::MatchesRegex("[0-9a-f]{32}"));
}

// What it does alone is measured with whole GPUs.
TEST(WorkloadFingerprint, ARunningPodIsTheSameWorkloadWithAPartOfAGpu) {
  const auto fingerprint_of = [](const std::string& limits, const std::string& more = "") {
    const auto pod =
        kube::ParseJson(R"({"metadata":{"annotations":{}},"spec":{"containers":[{"name":"main","image":"a",)" + more +
                        R"("resources":{"limits":{)" + limits + R"(},"requests":{)" + limits + "}}}]}}");
    return IdentityOfRunningPod(*pod, In("a"), kOwn).fingerprint;
  };
  const std::string whole = fingerprint_of(R"("cpu":"4","nvidia.com/gpu":"1")");
  for (const char* part : {"ai.centauruscloud.io/gpu-milli", "aliyun.com/gpu-mem", "alnair/vgpu-memory"}) {
    EXPECT_EQ(fingerprint_of(R"("cpu":"4",")" + std::string(part) + R"(":"8")"), whole) << part;
  }
  EXPECT_NE(fingerprint_of(R"("cpu":"5","nvidia.com/gpu":"1")"), whole);
  EXPECT_NE(fingerprint_of(R"("cpu":"4","nvidia.com/gpu":"1")", R"("args":["--large"],)"), whole);
}

}  // namespace
}  // namespace grus

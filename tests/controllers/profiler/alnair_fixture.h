// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>

#include "controllers/profiler/alnair_annotations.h"
#include "tests/controllers/profiler/usage_fixture.h"

namespace grus::testing {

// Pods with GPUs and their owners, and what stands on them.
class AlnairFixture : public UsageFixture {
 protected:
  explicit AlnairFixture(UsageSource source = {.url = "http://p:9090",
                                               .owner_kinds = {{"apps", "statefulsets"}},
                                               .writes_alnair_annotations = true})
      : UsageFixture(std::move(source)) {}

  void StartLongAgo() {
    Start();
    clock_.Advance(std::chrono::minutes(2));
  }
  static std::string Row(const std::string& labels, const std::string& pod, double value) {
    return R"({"metric":{"namespace":"team-a","pod":")" + pod + "\"" + labels + R"(},"value":[1,")" +
           std::to_string(value) + "\"]}";
  }
  // A process on GPU 0, and that GPU.
  void Busy(const std::string& pod, double gpu, const std::string& pid = {}, double process = 0) {
    std::string rows = Row(R"(,"series":"busy","gpu":"0")", pod, gpu);
    if (!pid.empty()) rows += "," + Row(R"(,"series":"busy","gpu":"0","pid":")" + pid + "\"", pod, process);
    std::string& all = rows_["grus_gpu_process_sm_ratio"];
    all += (all.empty() ? "" : ",") + rows;
  }
  void Cores(const std::string& pod, double cores) {
    std::string& all = rows_["container_cpu_usage_seconds_total"];
    all += (all.empty() ? "" : ",") + Row("", pod, cores);
  }

  std::map<std::string, std::string> On(std::string_view resource, const std::string& name) {
    std::map<std::string, std::string> annotations;
    const auto object = server_.Get(resource, {"team-a", name});
    const kube::Json* given = object ? object->At({"metadata", "annotations"}) : nullptr;
    if (given == nullptr) return annotations;
    for (const auto& [key, value] : *given->AsObject()) annotations[key] = *value.AsString();
    return annotations;
  }
  std::string UidOf(std::string_view resource, const std::string& name) {
    return *server_.Get(resource, {"team-a", name})->At({"metadata", "uid"})->AsString();
  }
  std::string MakeJob(const std::string& name, const std::string& annotations = "{}") {
    kube::Json job = Named("ai.centauruscloud.io/v1alpha1", "ElasticHorovodJob", name, "team-a");
    job["metadata"]["annotations"] = *kube::ParseJson(annotations);
    job["spec"] =
        *kube::ParseJson(R"({"launcherSpec":{"image":"a","pythonCommand":["x"]},"workersSpec":{"image":"a"}})");
    Create(kJobs, std::move(job));
    api_version_ = "ai.centauruscloud.io/v1alpha1";
    return UidOf(kJobs, name);
  }
  void AddWorker(const std::string& name, const std::string& job, const std::string& uid) {
    AddPod(name, "ElasticHorovodJob", job, uid);
    ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
  }
  int Patches() const { return tap_.Count("PATCH"); }

  // A process that sees only the pods of that many numbers run, and all of their owner's.
  void WriteSome(AlnairAnnotations& annotations, int from, int to, const std::string& uid,
                 const PodDetail& detail = {}) {
    RunBook book;
    UsageAnswer answer;
    for (int i = from; i < to; ++i) {
      const std::string name = "train-" + std::to_string(i);
      if (!pods_.Get<kube::Pod>({"team-a", name})) AddPod(name, "ElasticHorovodJob", "train", uid, 1);
      answer.usage[{"team-a", name}].cpu_cores = 1;
      answer.details[{"team-a", name}] = detail;
      ASSERT_TRUE(clock_.AwaitWaiters(waiters_));
      book.See(*GpuPodOf(*pods_.Get<kube::Pod>({"team-a", name}), nullptr, {}));
    }
    annotations.Take(book.RunningPods({clock_.WallNow()}, 120), answer);
    annotations.WriteSome(1000, {});
  }
  void WriteSome(int from, int to, const std::string& uid) {
    AlnairAnnotations annotations(tapped_, pods_, source_, clock_, log_);
    WriteSome(annotations, from, to, uid);
  }
  static kube::HttpResponse Invalid() {
    return {422, {}, R"({"kind":"Status","status":"Failure","reason":"Invalid","message":"no","code":422})"};
  }
};

}  // namespace grus::testing

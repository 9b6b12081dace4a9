// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/job_pods.h"

#include <gmock/gmock.h>

#include "controllers/cluster/owners.h"
#include "controllers/frame/refusals.h"
#include "controllers/policy/cluster_objects.h"
#include "tests/controllers/elastic/test_job.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using kube::Json;

class JobPodsTest : public testing::ReconcilerFixture {
 protected:
  static api::ElasticHorovodJob Job(const std::string& name) {
    api::ElasticHorovodJob job = TestJob();
    job.metadata.name = name;
    job.metadata.uid = "uid-of-" + name;
    return job;
  }
  void SetRange(const std::string& cpu) {
    if (server_.Get("limitranges", {"team-a", "range"})) (void)server_.Delete("limitranges", {"team-a", "range"});
    Json range = Named("v1", "LimitRange", "range", "team-a");
    range["spec"] = *kube::ParseJson(R"({"limits":[{"type":"Container","defaultRequest":{"cpu":")" + cpu + "\"}}]}");
    Create("limitranges", std::move(range));
  }
  void Enforce(const char* level) {
    Edit("namespaces", {"", "team-a"},
         [&](Json& ns) { ns["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] = level; });
  }
  std::int64_t MilliCpu(const api::ElasticHorovodJob& job) { return RequestOf(*pods_.Worker(job).pod).milli_cpu; }

  JobPods pods_{client_, clock_};
};

TEST_F(JobPodsTest, BeforeItIsAskedTheTemplateCounts) {
  SetRange("2");
  const api::ElasticHorovodJob job = Job("bert");

  EXPECT_EQ(MilliCpu(job), 0);
  EXPECT_FALSE(pods_.Worker(job).is_changed);
  EXPECT_FALSE(pods_.Worker(job).is_known);
  EXPECT_EQ(pods_.Worker(job).look_again, 1s);
}

TEST_F(JobPodsTest, WhatTheServerAddsIsPartOfBothPods) {
  SetRange("2");
  const api::ElasticHorovodJob job = Job("bert");

  pods_.Ask(job, {});

  EXPECT_EQ(MilliCpu(job), 2000);
  EXPECT_EQ(RequestOf(*pods_.Launcher(job).pod).milli_cpu, 2000);
  EXPECT_TRUE(pods_.Worker(job).is_changed);
  EXPECT_TRUE(server_.List("pods").empty());
}

TEST_F(JobPodsTest, JobsWhosePodsAreMadeAlikeShareAnAnswerForAMinute) {
  SetRange("2");
  const api::ElasticHorovodJob first = Job("first"), second = Job("second");
  pods_.Ask(first, {});
  SetRange("4");

  pods_.Ask(second, {});
  EXPECT_EQ(MilliCpu(second), 2000) << "not asked again";
  EXPECT_EQ(pods_.Worker(second).pod->metadata.Label(kJobNameLabel), "second");

  clock_.Advance(60s);
  pods_.Ask(second, {});
  EXPECT_EQ(MilliCpu(second), 4000);
  EXPECT_EQ(MilliCpu(first), 4000);
}

TEST_F(JobPodsTest, AnotherTemplateIsAnotherQuestion) {
  SetRange("2");
  pods_.Ask(Job("first"), {});
  SetRange("4");
  api::ElasticHorovodJob second = Job("second");
  second.spec.priority_class_name = "";
  second.spec.workers.image = "other";

  pods_.Ask(second, {});

  EXPECT_EQ(MilliCpu(second), 4000);
}

TEST_F(JobPodsTest, ARefusalLeavesWhatWasKnownAndIsAskedAboutAgainSoon) {
  SetRange("2");
  api::ElasticHorovodJob job = Job("bert");
  job.spec.workers.pod_template = *kube::ParseJson(R"({"spec":{"hostPID":true}})");
  pods_.Ask(job, {});
  Enforce("baseline");
  clock_.Advance(60s);

  pods_.Ask(job, {});
  EXPECT_EQ(MilliCpu(job), 2000);
  ASSERT_TRUE(pods_.Worker(job).refusal);
  EXPECT_TRUE(IsFinal(*pods_.Worker(job).refusal));

  clock_.Advance(4s);
  EXPECT_EQ(pods_.Worker(job).look_again, 1s);
  Edit("namespaces", {"", "team-a"}, [](Json& ns) { ns["metadata"].Erase("labels"); });
  clock_.Advance(1s);
  pods_.Ask(job, {});
  EXPECT_FALSE(pods_.Worker(job).refusal);
}

TEST_F(JobPodsTest, WhatTheNamespaceDemandsIsFilledInWhereTheTemplateLeavesItOpen) {
  api::ElasticHorovodJob plain = Job("plain"), contrary = Job("contrary");
  contrary.spec.workers.pod_template = *kube::ParseJson(R"({"spec":{"securityContext":{"runAsNonRoot":false}}})");
  pods_.Ask(plain, {});
  EXPECT_FALSE(pods_.Worker(plain).needs_filling);
  Enforce("restricted");
  clock_.Advance(60s);

  pods_.Ask(plain, {});
  EXPECT_FALSE(pods_.Worker(plain).refusal);
  EXPECT_TRUE(pods_.Worker(plain).needs_filling);
  EXPECT_TRUE(pods_.Launcher(plain).needs_filling);
  pods_.Ask(contrary, {});
  ASSERT_TRUE(pods_.Worker(contrary).refusal);
  EXPECT_EQ(pods_.Worker(contrary).refusal->message().substr(
                pods_.Worker(contrary).refusal->message().find("\"restricted:latest\"")),
            "\"restricted:latest\": runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)")
      << "only what the user wrote";
}

TEST_F(JobPodsTest, APodThatWasMadeCountsMoreThanAnswers) {
  SetRange("2");
  const api::ElasticHorovodJob job = Job("bert");
  pods_.Ask(job, {});
  kube::Pod made = *pods_.Worker(job).pod;
  made.spec.containers.front().resources.requests.emplace_back("nvidia.com/gpu", kube::Quantity(4));
  made.spec.node_name = "n1";

  pods_.Learn(job, made);
  clock_.Advance(60s);
  pods_.Ask(job, {});

  const JobPod worker = pods_.Worker(job);
  EXPECT_EQ(worker.pod->spec.containers, made.spec.containers);
  EXPECT_TRUE(worker.pod->spec.node_name.empty());
  EXPECT_TRUE(worker.is_known && worker.is_changed);
}

TEST_F(JobPodsTest, WhatWasLearntCountsUntilAnotherAnswerSaysThatSomethingChanged) {
  SetRange("2");
  const api::ElasticHorovodJob job = Job("bert");
  pods_.Ask(job, {});
  kube::Pod made = *pods_.Worker(job).pod;
  made.spec.containers.front().resources.requests = {{"cpu", kube::Quantity(40)}};
  pods_.Learn(job, made);
  ASSERT_EQ(MilliCpu(job), 40'000);

  SetRange("3");
  clock_.Advance(60s);
  pods_.Ask(job, {});
  EXPECT_EQ(MilliCpu(job), 3000);
}

TEST_F(JobPodsTest, APinIsNoPartOfWhatIsLearnt) {
  const api::ElasticHorovodJob job = Job("bert");
  pods_.Ask(job, {});
  kube::Pod made = *pods_.Worker(job).pod;
  made.metadata.annotations = kube::StringMap{{kGangPinnedAnnotation, "n1"}};
  made.spec.node_selector["kubernetes.io/hostname"] = "n1";

  pods_.Learn(job, made);
  EXPECT_TRUE(pods_.Worker(job).pod->spec.node_selector.empty());
}

// A webhook of the namespace does not answer, or fails.
class SilentNamespace final : public kube::Transport {
 public:
  explicit SilentNamespace(kube::Transport& next) : next_(next) {}
  kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
    if (request.method != "POST" || request.target.find("/team-a/pods?") == std::string::npos) {
      return next_.Send(request, std::move(stop));
    }
    asked.push_back(request);
    return kube::Error(kube::ErrorCode::kTimeout, "no answer within 3000 ms");
  }
  kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
    return next_.Open(request, std::move(stop));
  }
  std::vector<kube::HttpRequest> asked;

 private:
  kube::Transport& next_;
};

TEST_F(JobPodsTest, ANamespaceWithoutAnswersIsAskedLessAndLessOftenAndOthersAreNot) {
  SilentNamespace silent(server_);
  kube::Client client(silent, nullptr, clock_);
  JobPods pods(client, clock_);
  std::vector<kube::Duration> pauses;
  for (int i = 0; i < 9; ++i) {
    // Other jobs of the namespace do not ask either.
    for (const char* name : {"first", "second"}) {
      api::ElasticHorovodJob job = Job(name);
      job.spec.workers.image = name;
      pods.Ask(job, {});
      EXPECT_FALSE(pods.Worker(job).is_known);
    }
    ASSERT_EQ(silent.asked.size(), static_cast<std::size_t>(i + 1));
    pauses.push_back(*pods.Worker(Job("first")).look_again);
    clock_.Advance(pauses.back());
  }
  EXPECT_THAT(pauses, ::testing::ElementsAre(5s, 10s, 20s, 40s, 80s, 160s, 300s, 300s, 300s));
  EXPECT_EQ(silent.asked.front().timeout, kube::Duration(3s)) << "a reconciler waits for it";
  EXPECT_NE(silent.asked.front().body.find(R"("kind":"ElasticHorovodJob","name":"first")"), std::string::npos)
      << "policies look at the owner";

  api::ElasticHorovodJob other = Job("other");
  other.metadata.ns = "default";
  pods.Ask(other, {});
  EXPECT_TRUE(pods.Worker(other).is_known || pods.Worker(other).refusal);
}

TEST_F(JobPodsTest, WhatIsForgottenIsAskedForAnew) {
  SetRange("2");
  const api::ElasticHorovodJob job = Job("bert");
  pods_.Ask(job, {});

  pods_.Forget(job.metadata.Key());

  EXPECT_EQ(MilliCpu(job), 0);
}

}  // namespace
}  // namespace grus

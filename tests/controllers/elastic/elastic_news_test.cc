// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/elastic_news.h"

#include <gtest/gtest.h>

#include <functional>

#include "clientlib/model/apps_v1.h"
#include "clientlib/model/batch_v1.h"
#include "controllers/elastic/elastic_view.h"

namespace grus {
namespace {

template <typename T>
T Read(const std::string& text) {
  auto object = kube::Decode<T>(text);
  EXPECT_TRUE(object) << text;
  return object ? **object : T();
}

kube::Pod Worker(const std::string& spec, const std::string& status, const std::string& metadata = "") {
  return Read<kube::Pod>(
      R"({"metadata":{"name":"bert-workers-0","uid":"p0","labels":{"ai.centauruscloud.io/role":"worker"})" + metadata +
      R"(},"spec":)" + spec + R"(,"status":)" + status + "}");
}

std::string Scheduled(const std::string& status, const std::string& reason) {
  return R"({"conditions":[{"type":"PodScheduled","status":")" + status + R"(","reason":")" + reason +
         R"(","lastTransitionTime":"2026-01-02T03:04:05Z"}]})";
}

constexpr char kBound[] = R"({"nodeName":"a"})";
constexpr char kReady[] = R"({"phase":"Running","conditions":[{"type":"Ready","status":"True"}]})";
constexpr char kGated[] = R"({"schedulingGates":[{"name":"scheduling.x-k8s.io/gang"}]})";

TEST(ElasticNews, APodIsWorthAPassAsFarAsThePlanReadsIt) {
  struct Case {
    const char* change;
    kube::Pod before, after;
    News news;
  };
  const kube::Pod waiting = Worker("{}", "{}"), bound = Worker(kBound, "{}"), ready = Worker(kBound, kReady);
  const Case kCases[] = {
      {"bound", waiting, bound, News::kSoon},
      {"an address", bound, Worker(kBound, R"({"podIP":"10.0.0.1"})"), News::kNone},
      {"ready", bound, ready, News::kNow},
      {"no longer ready", ready, bound, News::kNow},
      {"unschedulable", waiting, Worker("{}", Scheduled("False", "Unschedulable")), News::kNow},
      {"gate lifted", Worker(kGated, "{}"), waiting, News::kSoon},
      {"gate of another controller lifted",
       Worker(R"({"schedulingGates":[{"name":"scheduling.x-k8s.io/gang"},{"name":"example.com/admission"}]})", "{}"),
       Worker(kGated, "{}"), News::kNow},
      {"being deleted", ready, Worker(kBound, kReady, R"(,"deletionTimestamp":"2026-01-02T03:04:05Z")"), News::kNow},
      {"its owner lost", Worker(kBound, kReady, R"(,"ownerReferences":[{"kind":"ElasticHorovodJob","uid":"u"}])"),
       ready, News::kNow},
      {"failed", ready, Worker(kBound, R"({"phase":"Failed"})"), News::kNow},
  };
  for (const Case& c : kCases) EXPECT_EQ(NewsOfJobPod(&c.before, &c.after), c.news) << c.change;
}

TEST(ElasticNews, ANewPodCanWaitAndAGoneOneCannot) {
  const kube::Pod waiting = Worker("{}", "{}");
  EXPECT_EQ(NewsOfJobPod(nullptr, &waiting), News::kSoon);
  EXPECT_EQ(NewsOfJobPod(&waiting, nullptr), News::kNow);
}

TEST(ElasticNews, OfALauncherThePhaseAndThePushedHostsCount) {
  const auto launcher = [](const std::string& metadata, const std::string& phase) {
    return Read<kube::Pod>(R"({"metadata":{"name":"l","uid":"l0","labels":{"ai.centauruscloud.io/role":"launcher"})" +
                           metadata + R"(},"status":{"phase":")" + phase + R"("}})");
  };
  const kube::Pod pending = launcher("", "Pending"), running = launcher("", "Running");
  const kube::Pod told = launcher(R"(,"annotations":{"ai.centauruscloud.io/hosts":"revision 2\n"})", "Running");
  EXPECT_EQ(NewsOfJobPod(&pending, &running), News::kNow);
  EXPECT_EQ(NewsOfJobPod(&running, &told), News::kNow);
  EXPECT_EQ(NewsOfJobPod(&running, &running), News::kNone);
}

template <typename T>
bool IsSame(const T& before, const std::function<void(T&)>& change) {
  T after = before;
  after.metadata.resource_version = "2";
  change(after);
  return LooksSameToPlan(kube::KindOf<T>(), before, after);
}

TEST(ElasticNews, OfAChildTheSpecItsLabelsAndItsEndCount) {
  kube::Job launcher;
  launcher.metadata.generation = 1;
  EXPECT_TRUE(IsSame<kube::Job>(launcher, [](auto&) {}));
  EXPECT_FALSE(IsSame<kube::Job>(launcher, [](auto& job) { job.metadata.generation = 2; }));
  EXPECT_FALSE(IsSame<kube::Job>(launcher, [](auto& job) { job.metadata.uid = "another"; }));
  EXPECT_FALSE(IsSame<kube::Job>(launcher, [](auto& job) { job.metadata.labels.emplace("a", "b"); }));
  EXPECT_FALSE(IsSame<kube::Job>(launcher, [](auto& job) { job.metadata.annotations.emplace("a", "b"); }));
  EXPECT_FALSE(IsSame<kube::Job>(launcher, [](auto& job) {
    kube::CoreCondition complete;
    complete.type = "Complete";
    complete.status = "True";
    job.status.conditions.push_back(complete);
  }));

  EXPECT_FALSE(IsSame<kube::ConfigMap>({}, [](auto&) {})) << "its data have no generation";
  EXPECT_FALSE(IsSame<kube::Service>({}, [](auto&) {}));
}

TEST(ElasticNews, HowFarTheTrainingOfAJobIsIsNoNews) {
  api::ElasticHorovodJob job;
  job.metadata.uid = "u";
  job.metadata.generation = 1;
  job.metadata.annotations = {{"a", "1"}};
  job.status.replicas.ready = 2;
  const auto news = [&](const std::function<void(api::ElasticHorovodJob&)>& change) {
    api::ElasticHorovodJob after = job;
    after.metadata.resource_version = "2";
    change(after);
    return NewsOfJob(&job, &after);
  };
  EXPECT_EQ(news([](auto& j) { j.metadata.annotations.emplace("ai.centauruscloud.io/step", "40"); }), News::kNone);
  EXPECT_EQ(news([](auto& j) { j.status.progress = api::Progress(); }), News::kNone);

  EXPECT_EQ(news([](auto& j) { j.metadata.annotations.emplace("a2", "1"); }), News::kNow);
  EXPECT_EQ(news([](auto& j) { j.metadata.annotations.emplace("ai.centauruscloud.io/model", "m"); }), News::kNow);
  EXPECT_EQ(news([](auto& j) { j.metadata.labels.emplace("a", "1"); }), News::kNow);
  EXPECT_EQ(news([](auto& j) { j.metadata.generation = 2; }), News::kNow);
  EXPECT_EQ(news([](auto& j) { j.metadata.uid = "another"; }), News::kNow);
  EXPECT_EQ(news([](auto& j) { j.metadata.deletion_timestamp = kube::Time{}; }), News::kNow);
  EXPECT_EQ(news([](auto& j) { j.metadata.finalizers.push_back("example.com/f"); }), News::kNow);
  EXPECT_EQ(news([](auto& j) { j.status.replicas.ready = 3; }), News::kNow);
  EXPECT_EQ(NewsOfJob(nullptr, &job), News::kNow);
  EXPECT_EQ(NewsOfJob(&job, nullptr), News::kNow);
}

TEST(ElasticNews, WhatTheLauncherPushesIsNoNews) {
  const kube::Pod before = Read<kube::Pod>(
      R"({"metadata":{"name":"l","uid":"l0","labels":{"ai.centauruscloud.io/role":"launcher"}},"status":{"phase":"Running"}})");
  kube::Pod after = before;
  after.metadata.annotations.emplace("ai.centauruscloud.io/step", "40");
  EXPECT_EQ(NewsOfJobPod(&before, &after), News::kNone);
}

}  // namespace
}  // namespace grus

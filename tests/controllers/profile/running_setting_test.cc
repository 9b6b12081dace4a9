// SPDX-License-Identifier: Apache-2.0
#include "controllers/profile/running_setting.h"

#include <gtest/gtest.h>

#include "controllers/cluster/owners.h"

namespace grus {
namespace {

using Pods = std::vector<std::shared_ptr<const kube::Pod>>;

api::ElasticHorovodJob Job(int workers, int gpus_per_worker = 1) {
  api::ElasticHorovodJob job;
  job.spec.workers.gpus_per_worker = gpus_per_worker;
  job.status.phase = "Running";
  job.status.profile = api::JobProfile{"f", {}};
  job.status.replicas.granted = job.status.replicas.ready = workers;
  return job;
}

std::shared_ptr<kube::Pod> Pod(const std::string& role, const std::string& node) {
  auto pod = std::make_shared<kube::Pod>();
  pod->metadata.name = "bert-" + role;
  pod->metadata.uid = "uid-" + node;
  pod->metadata.labels = {{kRoleLabel, role}};
  pod->spec.node_name = node;
  pod->status.phase = "Running";
  kube::ContainerStatus status;
  status.name = role;
  status.state.running.emplace();
  pod->status.container_statuses.push_back(status);
  return pod;
}

std::string TypeOf(const std::string& node) { return node.substr(0, node.find('-')); }

TEST(SettingOf, CountsGpusAndNodesOfWorkers) {
  const auto setting = SettingOf(
      Job(3, 2), {Pod("worker", "A100-1"), Pod("worker", "A100-2"), Pod("worker", "A100-1"), Pod("launcher", "cpu-1")},
      TypeOf);
  ASSERT_TRUE(setting);
  EXPECT_EQ(setting->config, (api::TrialConfig{"A100", 6, 2, 0}));
  EXPECT_EQ(setting->launcher, "bert-launcher");
  EXPECT_EQ(setting->launcher_uid, "uid-cpu-1");
}

TEST(SettingOf, IsNoneWhileAnythingComesOrGoes) {
  const Pods all = {Pod("worker", "A100-1"), Pod("worker", "A100-2"), Pod("launcher", "cpu-1")};
  ASSERT_TRUE(SettingOf(Job(2), all, TypeOf));

  EXPECT_FALSE(SettingOf(Job(3), all, TypeOf)) << "a worker is still to come";
  EXPECT_FALSE(SettingOf(Job(1), all, TypeOf)) << "a worker is too many";
  EXPECT_FALSE(SettingOf(Job(2), {all[0], all[1]}, TypeOf)) << "no launcher";
  auto pending = Pod("worker", "A100-2");
  pending->status.phase = "Pending";
  EXPECT_FALSE(SettingOf(Job(2), {all[0], pending, all[2]}, TypeOf)) << "a worker does not run yet";
  auto going = Pod("worker", "A100-3");
  going->metadata.deletion_timestamp = kube::Time{};
  EXPECT_FALSE(SettingOf(Job(2), {all[0], all[1], all[2], going}, TypeOf)) << "a worker is on its way out";
  auto ended = Pod("launcher", "cpu-1");
  ended->status.container_statuses[0].state = {};
  EXPECT_FALSE(SettingOf(Job(2), {all[0], all[1], ended}, TypeOf)) << "the launcher has ended";
}

TEST(SettingOf, IsNoneOnGpusOfSeveralTypes) {
  EXPECT_FALSE(SettingOf(Job(2), {Pod("worker", "A100-1"), Pod("worker", "H100-1"), Pod("launcher", "cpu-1")}, TypeOf));
}

TEST(IsProfiled, IsARunningJobWhoseStatusNamesAProfile) {
  EXPECT_TRUE(IsProfiled(Job(1)));
  const auto with = [](auto change) {
    api::ElasticHorovodJob job = Job(1);
    change(job);
    return IsProfiled(job);
  };
  EXPECT_FALSE(with([](auto& job) { job.spec.profile = "Off"; }));
  EXPECT_FALSE(with([](auto& job) { job.status.profile.reset(); }));
  EXPECT_FALSE(with([](auto& job) { job.status.phase = "Waiting"; }));
  EXPECT_FALSE(with([](auto& job) { job.spec.run_policy.suspend = true; }));
  EXPECT_FALSE(with([](auto& job) { job.metadata.deletion_timestamp = kube::Time{}; }));
}

}  // namespace
}  // namespace grus

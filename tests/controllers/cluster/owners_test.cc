// SPDX-License-Identifier: Apache-2.0
#include "controllers/cluster/owners.h"

#include <gtest/gtest.h>

#include "crds/types/pod_group.h"

namespace grus {
namespace {

using kube::KindOf;

kube::Pod PodWith(kube::StringMap labels) {
  kube::Pod pod;
  pod.metadata.ns = "team-a";
  pod.metadata.labels = std::move(labels);
  return pod;
}

TEST(Owners, APodIsOwnedByItsGangElseByItsJob) {
  EXPECT_EQ(OwnerOf(PodWith({})), "");
  EXPECT_EQ(OwnerOf(PodWith({{"scheduling.x-k8s.io/pod-group", "g"}})), "team-a/g");
  EXPECT_EQ(OwnerOf(PodWith({{"pod-group.scheduling.sigs.k8s.io", "g"}})), "scheduling.sigs.k8s.io/team-a/g");
  EXPECT_EQ(OwnerOf(PodWith({{kJobNameLabel, "bert"}, {kRoleLabel, "worker"}})), "team-a/bert");
  EXPECT_EQ(OwnerOf(PodWith({{kJobNameLabel, "bert"}, {kRoleLabel, "launcher"}})), "team-a/bert/launcher");
  EXPECT_EQ(OwnerOf(PodWith({{kJobNameLabel, "bert"}, {kRoleLabel, "other"}})), "");
  EXPECT_EQ(
      OwnerOf(PodWith({{kJobNameLabel, "bert"}, {kRoleLabel, "worker"}, {"scheduling.x-k8s.io/pod-group", "bert"}})),
      "team-a/bert");
}

TEST(Owners, AGangsKeyLeadsBackToItsGroupAndToNoOtherKinds) {
  const kube::ObjectKey key{"team-a", "g"};
  for (const kube::Kind* kind : {&KindOf<api::PodGroup>(), &KindOf<api::LegacyPodGroup>()}) {
    EXPECT_EQ(GroupOfGang(*kind, GangKey(*kind, key)), key);
  }
  EXPECT_FALSE(GroupOfGang(KindOf<api::PodGroup>(), GangKey(KindOf<api::LegacyPodGroup>(), key)));
  EXPECT_FALSE(GroupOfGang(KindOf<api::LegacyPodGroup>(), GangKey(KindOf<api::PodGroup>(), key)));
  EXPECT_FALSE(GroupOfGang(KindOf<api::PodGroup>(), LauncherOwner("team-a/bert")));
}

}  // namespace
}  // namespace grus

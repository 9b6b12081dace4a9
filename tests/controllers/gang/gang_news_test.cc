// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/gang_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/types/pod_group.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(GroupOfPod, IsWhatItsLabelSaysAndWithoutALabelTheOneWithoutAName) {
  const kube::Kind& kind = api::PodGroup::ResourceKind();
  const kube::Kind& legacy = api::LegacyPodGroup::ResourceKind();
  kube::Pod pod;
  pod.metadata.ns = "team-a";
  EXPECT_EQ(GroupOfPod(kind, pod), std::nullopt);
  pod.spec.scheduling_gates.resize(1);
  pod.spec.scheduling_gates[0].name = api::kGangGate;
  EXPECT_EQ(GroupOfPod(kind, pod), (kube::ObjectKey{"team-a", ""}));
  EXPECT_EQ(GroupOfPod(legacy, pod), std::nullopt) << "one of us tells it";
  pod.metadata.labels = {{std::string(api::kLegacyPodGroupLabel), "g"}};
  EXPECT_EQ(GroupOfPod(kind, pod), std::nullopt);
  EXPECT_EQ(GroupOfPod(legacy, pod), (kube::ObjectKey{"team-a", "g"}));
}

TEST(VolumeClaimsAwaitedBy, AreThoseOfMembersWithoutANode) {
  const kube::Kind& kind = api::PodGroup::ResourceKind();
  kube::Pod pod;
  pod.metadata.ns = "team-a";
  pod.metadata.labels = {{std::string(api::kPodGroupLabel), "g"}};
  pod.spec.volumes.resize(1);
  pod.spec.volumes[0].claim.emplace().claim_name = "data";
  EXPECT_THAT(VolumeClaimsAwaitedBy(kind, pod), ElementsAre("team-a/data"));
  EXPECT_THAT(VolumeClaimsAwaitedBy(api::LegacyPodGroup::ResourceKind(), pod), IsEmpty()) << "it is in no such group";
  pod.spec.node_name = "n1";
  EXPECT_THAT(VolumeClaimsAwaitedBy(kind, pod), IsEmpty()) << "it is where it is";
}

}  // namespace
}  // namespace grus

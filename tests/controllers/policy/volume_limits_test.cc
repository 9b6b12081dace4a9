// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/volume_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A claim with its volume in a zone and its class; what a test changes is all it is about.
struct Facts {
  kube::PersistentVolumeClaim claim;
  kube::PersistentVolume volume;
  kube::StorageClass storage_class;
  ClaimFacts facts{&claim, &volume, &storage_class};

  Facts() {
    claim.spec.volume_name = "pv-1";
    claim.spec.storage_class_name = "fast";
    claim.status.phase = "Bound";
    claim.metadata.annotations = {{"pv.kubernetes.io/bind-completed", "yes"}};
    SetZone("a");
    storage_class.volume_binding_mode = "Immediate";
  }
  void SetZone(const char* zone) {
    kube::NodeSelector& where = volume.spec.node_affinity.required.emplace();
    where.terms.emplace_back().match_expressions = {{"topology.kubernetes.io/zone", "In", {zone}}};
  }
  void Unbind() {
    claim.spec.volume_name = "";
    claim.status.phase = "Pending";
    claim.metadata.annotations = {};
    facts.volume = nullptr;
  }
};

TEST(AddClaim, SaysWhereAPodCanRunAsTheSchedulerDoes) {
  struct Case {
    const char* rule;
    void (*change)(Facts&);
    std::size_t affinities;
    const char* problem;  // Without the claim's name; empty: none.
  };
  const Case kCases[] = {
      {"bound", [](Facts&) {}, 1, ""},
      {"bound, usable everywhere", [](Facts& f) { f.volume.spec.node_affinity.required.reset(); }, 0, ""},
      {"missing", [](Facts& f) { f.facts.claim = nullptr; }, 0, "does not exist"},
      {"ending", [](Facts& f) { f.claim.metadata.deletion_timestamp.emplace(); }, 0, "is being deleted"},
      {"lost", [](Facts& f) { f.claim.status.phase = "Lost"; }, 0, "has lost its volume"},
      {"its volume is gone", [](Facts& f) { f.facts.volume = nullptr; }, 0,
       "is bound to PersistentVolume pv-1, which does not exist"},
      {"volumes cannot be read",
       [](Facts& f) {
         f.facts.volume = nullptr;
         f.facts.are_volumes_known = false;
       },
       0, ""},
      {"named, and not bound yet", [](Facts& f) { f.claim.metadata.annotations = {}; }, 0,
       "is not bound to a volume yet"},
      {"to be bound at once", [](Facts& f) { f.Unbind(); }, 0, "is not bound to a volume yet"},
      {"to be bound with its pod",
       [](Facts& f) {
         f.Unbind();
         f.storage_class.volume_binding_mode = "WaitForFirstConsumer";
       },
       0, ""},
      {"its class is missing",
       [](Facts& f) {
         f.Unbind();
         f.facts.storage_class = nullptr;
       },
       0, "is not bound to a volume yet"},
      {"classes cannot be read",
       [](Facts& f) {
         f.Unbind();
         f.facts.storage_class = nullptr;
         f.facts.are_classes_known = false;
       },
       0, ""},
      {"no class, and classes cannot be read",
       [](Facts& f) {
         f.Unbind();
         f.claim.spec.storage_class_name = "";
         f.facts.storage_class = nullptr;
         f.facts.are_classes_known = false;
       },
       0, "is not bound to a volume yet"},
  };
  for (const Case& c : kCases) {
    Facts facts;
    c.change(facts);
    VolumeLimits limits;
    AddClaim(limits, "team-a/data", facts.facts);
    EXPECT_THAT(limits.affinity, SizeIs(c.affinities)) << c.rule;
    const std::string want = *c.problem == '\0' ? "" : "PersistentVolumeClaim team-a/data " + std::string(c.problem);
    EXPECT_EQ(limits.problem, want) << c.rule;
  }
}

TEST(AddClaim, KeepsEachPlaceOnceAndTheFirstProblem) {
  Facts one, same, other, missing;
  other.SetZone("b");
  missing.facts.claim = nullptr;
  VolumeLimits limits;
  for (const Facts* facts : {&one, &same, &other}) AddClaim(limits, "t/c", facts->facts);
  AddClaim(limits, "t/first", missing.facts);
  AddClaim(limits, "t/second", missing.facts);
  EXPECT_THAT(limits.affinity,
              ElementsAre(*one.volume.spec.node_affinity.required, *other.volume.spec.node_affinity.required));
  EXPECT_EQ(limits.problem, "PersistentVolumeClaim t/first does not exist");
}

TEST(ClassOf, TheOldAnnotationComesFirst) {
  kube::PersistentVolumeClaim claim;
  claim.spec.storage_class_name = "new";
  EXPECT_EQ(ClassOf(claim), "new");
  claim.metadata.annotations = {{"volume.beta.kubernetes.io/storage-class", "old"}};
  EXPECT_EQ(ClassOf(claim), "old");
}

TEST(PlacesOf, NamesThoseOfEphemeralVolumesAfterPodAndVolume) {
  kube::Pod pod;
  EXPECT_THAT(VolumeClaimsOf(pod), IsEmpty());
  pod.spec.volumes.resize(2);
  pod.spec.volumes[0].claim.emplace().claim_name = "data";
  pod.spec.volumes[1].name = "scratch";
  pod.spec.volumes[1].ephemeral.emplace();
  EXPECT_THAT(VolumeClaimsOf(pod), ElementsAre("data")) << "it has no name yet";
  pod.metadata.name = "bert-0";
  EXPECT_THAT(VolumeClaimsOf(pod), ElementsAre("data", "bert-0-scratch"));
}

}  // namespace
}  // namespace grus

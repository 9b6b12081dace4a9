// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/child_writer.h"

#include <gmock/gmock.h>

#include "crds/types/pod_group.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

constexpr char kGroups[] = "podgroups.scheduling.x-k8s.io";

// A ConfigMap is the child of a PodGroup.
class ChildWriterTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    kube::Json group = Named("scheduling.x-k8s.io/v1alpha1", "PodGroup", "g", "team-a");
    group["spec"]["minMember"] = 2;
    Create(kGroups, std::move(group));
    owner_ = (*client_.Get(kube::KindOf<api::PodGroup>(), {"team-a", "g"}))->metadata;
  }
  kube::Json Wanted() {
    ++made_;
    kube::Json map = Named("v1", "ConfigMap", "child", "team-a");
    map["metadata"]["labels"]["app"] = "g";
    kube::Json owner = kube::Json::MakeObject({{"apiVersion", "scheduling.x-k8s.io/v1alpha1"},
                                               {"kind", "PodGroup"},
                                               {"name", "g"},
                                               {"uid", owner_.uid},
                                               {"controller", true}});
    map["metadata"]["ownerReferences"].Append(std::move(owner));
    map["data"]["key"] = "value";
    return map;
  }
  // A pass that wants the child, or none.
  kube::Status Bring(bool is_wanted = true, bool was_there = false) {
    const auto found = client_.Get<kube::ConfigMap>({"team-a", "child"});
    const auto live = found ? *found : nullptr;
    WantedChild child{.kind = kube::KindOf<kube::ConfigMap>(), .live = live, .was_there = was_there};
    if (is_wanted) child.make = [this](bool) { return Wanted(); };
    child.is_right = [&](const kube::Json& wanted) { return *wanted.Find("data") == live->data_json(); };
    ChildWriter writer(client_, writes_, &marks_, kube::KindOf<api::PodGroup>(), owner_, {});
    return writer.Bring(child);
  }
  std::string Value() {
    const auto map = server_.Get("configmaps", {"team-a", "child"});
    return map ? *map->At({"data", "key"})->AsString() : "none";
  }

  kube::ObjectMeta owner_;
  kube::WriteTracker writes_;
  ChildMarks marks_{kube::KeptFor::kSpec};
  int made_ = 0;
};

TEST_F(ChildWriterTest, IsComparedOnceAndThenWhenSomebodyChangesIt) {
  for (int pass = 0; pass < 4; ++pass) ASSERT_TRUE(Bring());
  EXPECT_EQ(made_, 2) << "made, and compared";
  Edit("configmaps", {"team-a", "child"}, [](kube::Json& map) { map["data"]["key"] = "another"; });
  ASSERT_TRUE(Bring());
  EXPECT_EQ(Value(), "value");
}

TEST_F(ChildWriterTest, IsComparedAgainWhenTheOwnersSpecChanges) {
  for (int pass = 0; pass < 3; ++pass) ASSERT_TRUE(Bring());
  ++owner_.generation;
  for (int pass = 0; pass < 3; ++pass) ASSERT_TRUE(Bring());
  EXPECT_EQ(made_, 3);
}

TEST_F(ChildWriterTest, IsNotMadeAgainForAnOwnerThatIsDeleted) {
  ASSERT_TRUE(Bring());
  ASSERT_TRUE(Bring());
  ASSERT_TRUE(server_.Delete(kGroups, {"team-a", "g"}));
  ASSERT_TRUE(server_.Delete("configmaps", {"team-a", "child"}));
  const kube::Status made = Bring();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), kube::ErrorCode::kGone);
  EXPECT_EQ(Value(), "none");
}

TEST_F(ChildWriterTest, IsNotMadeAgainForAnOwnerThatIsBeingDeleted) {
  ASSERT_TRUE(Bring());
  ASSERT_TRUE(Bring());
  Edit(kGroups, {"team-a", "g"},
       [](kube::Json& group) { group["metadata"]["finalizers"] = kube::Json::MakeArray({"example.com/hold"}); });
  ASSERT_TRUE(server_.Delete(kGroups, {"team-a", "g"}));
  ASSERT_TRUE(server_.Get(kGroups, {"team-a", "g"}));
  ASSERT_TRUE(server_.Delete("configmaps", {"team-a", "child"}));
  const kube::Status made = Bring();
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), kube::ErrorCode::kGone);
  EXPECT_EQ(Value(), "none");
}

TEST_F(ChildWriterTest, OneOfSomebodyElsesIsLeftAloneAndNamed) {
  kube::Json theirs = Named("v1", "ConfigMap", "child", "team-a");
  theirs["data"]["key"] = "theirs";
  Create("configmaps", std::move(theirs));
  ChildWriter writer(client_, writes_, &marks_, kube::KindOf<api::PodGroup>(), owner_, {});
  const kube::Status made = writer.CreateOrTake(
      kube::KindOf<kube::ConfigMap>(), [this](bool) { return Wanted(); }, false);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), kube::ErrorCode::kAlreadyExists);
  EXPECT_THAT(made.error().message(), HasSubstr(R"(ConfigMap "child" exists and has no controller)"));
  EXPECT_EQ(Value(), "theirs");
}

TEST_F(ChildWriterTest, OneThatIsNotWantedIsDeletedOnce) {
  ASSERT_TRUE(Bring());
  ASSERT_TRUE(Bring(false));
  EXPECT_EQ(Value(), "none");
  EXPECT_TRUE(Bring(false));
}

}  // namespace
}  // namespace grus

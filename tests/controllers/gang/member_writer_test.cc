// SPDX-License-Identifier: Apache-2.0
#include "controllers/gang/member_writer.h"

#include <gtest/gtest.h>

#include "tests/controllers/gang/gang_builder.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using kube::Json;

// Pods of a Job that are members of the gang of GangBuilder.
class MemberWriterTest : public testing::ReconcilerFixture {
 protected:
  void AddPod(const std::string& name) {
    Json pod = kit::MakePod(name, kit::PodSpec(0), {}, "team-a");
    pod["metadata"]["finalizers"] = Json::MakeArray({kJobTracking});
    Create("pods", std::move(pod));
  }
  // As the server has it now.
  void See(Member& member) const {
    const Json pod = *server_.Get("pods", {"team-a", member.name});
    member.uid = *pod.At({"metadata", "uid"})->AsString();
    member.resource_version = *pod.At({"metadata", "resourceVersion"})->AsString();
    member.is_tracked_by_job = true;
  }
  // REQUIRES: it is there.
  bool IsEnding(const std::string& pod) const {
    return server_.Get("pods", {"team-a", pod})->At({"metadata", "deletionTimestamp"}) != nullptr;
  }

  kube::Informer& pods_ = Cache<kube::Pod>();
  kube::Informer& nodes_ = Cache<kube::Node>();
  ClusterAccount account_{nodes_, pods_, clock_};
  kube::WriteTracker writes_;
  MemberWriter writer_{client_, account_, writes_, clock_, log_};
};

TEST_F(MemberWriterTest, AMemberThatHasChangedSinceItWasSeenIsLeftToTheNextPassAndTheOthersEnd) {
  GangView view = testing::GangBuilder(2).Lifted(2).Build();
  GangPlan plan;
  for (Member& member : view.members) {
    AddPod(member.name);
    See(member);
    plan.end.push_back(&member);
  }
  // Its node, as a rule: the scheduler gives it what others have left.
  Edit("pods", {"team-a", view.members[0].name}, [](Json& pod) { pod["metadata"]["labels"]["changed"] = "yes"; });

  const kube::Status done = writer_.End(view, plan, {});

  EXPECT_TRUE(done) << done.error().message();
  EXPECT_FALSE(IsEnding(view.members[0].name));
  EXPECT_FALSE(server_.Get("pods", {"team-a", view.members[1].name}));
  See(view.members[0]);
  EXPECT_TRUE(writer_.End(view, plan, {}));
  EXPECT_FALSE(server_.Get("pods", {"team-a", view.members[0].name}));
}

TEST_F(MemberWriterTest, AnotherPodOfTheNameOfAMemberIsNotEnded) {
  GangView view = testing::GangBuilder(1).Lifted(1).Build();
  Member& member = view.members.front();
  AddPod(member.name);
  See(member);
  member.uid = "of-the-one-before";
  member.is_tracked_by_job = false;
  GangPlan plan;
  plan.end.push_back(&member);

  EXPECT_TRUE(writer_.End(view, plan, {}));

  EXPECT_FALSE(IsEnding(member.name));
}

}  // namespace
}  // namespace grus

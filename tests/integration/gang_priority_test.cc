// SPDX-License-Identifier: Apache-2.0
// PriorityClasses of ElasticHorovodJobs, which count before there are pods.
#include "clientlib/model/scheduling_v1.h"
#include "tests/integration/gang_fixture.h"

namespace grus::testing {
namespace {

using kube::KindOf;
using ::testing::HasSubstr;

class GangPriority : public Gang {
 protected:
  std::string ClassName(const std::string& name) const { return ns() + "-" + name; }
  void CreateClass(const std::string& name, int value) {
    Must(client().Create(KindOf<kube::PriorityClass>(), "", kit::MakePriorityClass(ClassName(name), value)));
  }
  void CreateJob(const std::string& name, const std::string& class_name) {
    Create(R"({"priorityClassName":")" + (class_name.empty() ? "" : ClassName(class_name)) +
               R"(","workersSpec":{"minReplicas":4,"maxReplicas":4}})",
           name);
  }
};

TEST_F(GangPriority, OfTwoJobsThatWaitTheLaterWithTheHigherClassStartsFirst) {
  CreateClass("high", 1000);
  AddNode(4);
  CreateJob("first", "");
  ASSERT_TRUE(AwaitTrains(4, "first"));
  CreateJob("early", "");
  ASSERT_TRUE(Await("it waits", [&] { return ReasonOf("Ready", "early") == "WaitingForRoom"; }));
  CreateJob("late", "high");
  ASSERT_TRUE(Await("it waits, too", [&] { return ReasonOf("Ready", "late") == "WaitingForRoom"; }));
  EXPECT_TRUE(AllPods("late").empty()) << "and preempts nobody: it has no pods";

  SetOutcome(LauncherPod("first")->metadata.name, "succeed");

  EXPECT_TRUE(AwaitTrains(4, "late"));
  EXPECT_TRUE(AllPods("early").empty());
  SetOutcome(LauncherPod("late")->metadata.name, "succeed");
  EXPECT_TRUE(AwaitTrains(4, "early"));
}

TEST_F(GangPriority, AJobWhoseClassDoesNotExistSaysSoAndStartsOnceItDoes) {
  AddNode(4);
  CreateJob(kName, "none");
  ASSERT_TRUE(Await("it says so", [&] { return ReasonOf("Stalled") == "TemplateRefused"; }));
  EXPECT_THAT(MessageOf("Stalled"), HasSubstr("PriorityClass \"" + ClassName("none") + "\" does not exist"));
  EXPECT_FALSE(Set());

  CreateClass("none", 1);
  EXPECT_TRUE(AwaitTrains(4));
}

}  // namespace
}  // namespace grus::testing

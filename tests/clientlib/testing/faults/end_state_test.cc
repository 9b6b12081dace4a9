// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/faults/end_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;

class PlainWorkload : public Workload {
 public:
  std::string_view name() const override { return "plain"; }
  void Prepare(World&) const override {}
  std::vector<Step> Steps() const override { return {}; }
  void RunProcess(const ProcessContext&, std::stop_token) const override {}
  std::vector<std::string> owned_resources() const override { return {}; }
  bool Damage(std::string_view, Json&) const override { return false; }
  void Mask(std::string_view, Json&) const override {}
  std::vector<std::string> CheckRest(const World&) const override { return {}; }
};

void Put(World& world, const std::string& resource, std::string_view text) {
  const Result<Json> object = ParseJson(text);
  ASSERT_TRUE(object) << object.error().message();
  const Json* ns = object->At({"metadata", "namespace"});
  world.objects[resource][{ns ? *ns->AsString() : "", *object->At({"metadata", "name"})->AsString()}] =
      std::make_shared<const Json>(*object);
}

// The end of a world with that one object.
std::map<std::string, std::string> EndOf(std::string_view text, const std::string& resource = "pods",
                                         const Workload& workload = PlainWorkload()) {
  World world(1);
  Put(world, resource, text);
  return EndState(world, workload);
}
// The masked object alone.
std::string Masked(std::string_view text) { return EndOf(text).begin()->second; }

TEST(EndState, NamesObjectsByResourceNamespaceAndName) {
  EXPECT_THAT(EndOf(R"({"metadata":{"name":"p","namespace":"default"}})"), ElementsAre(Key("pods default/p")));
  EXPECT_THAT(EndOf(R"({"metadata":{"name":"n"}})", "nodes"), ElementsAre(Key("nodes n")));
}

TEST(EndState, LeavesOutEventsLeasesAndCrds) {
  for (const char* resource : {"events", "events.events.k8s.io", "leases.coordination.k8s.io",
                               "customresourcedefinitions.apiextensions.k8s.io"}) {
    EXPECT_THAT(EndOf(R"({"metadata":{"name":"x","namespace":"default"}})", resource), IsEmpty()) << resource;
  }
}

TEST(EndState, IsEqualWhereOnlyWhatTheServerDrawsDiffers) {
  struct Case {
    const char *rule, *one, *other;
  };
  for (const Case& c : {
           Case{"identity and history", R"({"metadata":{"name":"p","uid":"u1","resourceVersion":"1","generation":1}})",
                R"({"metadata":{"name":"p","uid":"u2","resourceVersion":"9","generation":7}})"},
           Case{"what is missing there", R"({"metadata":{"name":"p","managedFields":[{"manager":"a"}]}})",
                R"({"metadata":{"name":"p"}})"},
           Case{"the order of members", R"({"metadata":{"name":"p"},"spec":{"a":1,"b":{"c":1,"d":2}}})",
                R"({"spec":{"b":{"d":2,"c":1},"a":1},"metadata":{"name":"p"}})"},
           Case{"places and addresses",
                R"({"metadata":{"name":"p"},"spec":{"nodeName":"n1"},"status":{"podIP":"10.0.0.1"}})",
                R"({"metadata":{"name":"p"},"spec":{"nodeName":"n2"},"status":{"podIP":"10.0.0.2"}})"},
           Case{"times", R"({"metadata":{"name":"p","creationTimestamp":"2026-01-02T03:04:05Z"}})",
                R"({"metadata":{"name":"p","creationTimestamp":"2026-01-02T04:00:00Z"}})"},
           Case{"times with parts of seconds", R"({"metadata":{"name":"p"},"renewTime":"2026-01-02T03:04:05.000001Z"})",
                R"({"metadata":{"name":"p"},"renewTime":"2026-01-02T04:00:00.123456Z"})"},
           Case{"owners' UIDs", R"({"metadata":{"name":"p","ownerReferences":[{"name":"o","uid":"u1"}]}})",
                R"({"metadata":{"name":"p","ownerReferences":[{"name":"o","uid":"u2"}]}})"},
           Case{"labels with UIDs", R"({"metadata":{"name":"p","labels":{"batch.kubernetes.io/controller-uid":"u1"}}})",
                R"({"metadata":{"name":"p","labels":{"batch.kubernetes.io/controller-uid":"u2"}}})"},
           Case{"UIDs within names", R"({"metadata":{"name":"p"},"x":"ssh-00feef93-d876-46e6-81b1-336b4768db16-0"})",
                R"({"metadata":{"name":"p"},"x":"ssh-11111111-d876-46e6-81b1-336b4768db16-0"})"},
           Case{"revisions", R"({"metadata":{"name":"p"},"status":{"currentRevision":"p-1","updateRevision":"p-1"}})",
                R"({"metadata":{"name":"p"},"status":{"currentRevision":"p-2","updateRevision":"p-3"}})"},
       }) {
    EXPECT_EQ(Masked(c.one), Masked(c.other)) << c.rule;
  }
}

TEST(EndState, DiffersWhereTheWorldDoes) {
  constexpr char kThis[] = R"({"metadata":{"name":"p","labels":{"a":"b"},"finalizers":["f"],
      "ownerReferences":[{"name":"o"}],"creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"n":1},"list":[1,2]})";
  for (const char* other : {
           R"({"metadata":{"name":"p","finalizers":["f"],"ownerReferences":[{"name":"o"}],
               "creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"n":1},"list":[1,2]})",
           R"({"metadata":{"name":"p","labels":{"a":"b"},"finalizers":["f"],"ownerReferences":[{"name":"other"}],
               "creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"n":1},"list":[1,2]})",
           R"({"metadata":{"name":"p","labels":{"a":"b"},"finalizers":["f"],"ownerReferences":[{"name":"o"}],
               "creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"n":2},"list":[1,2]})",
           R"({"metadata":{"name":"p","labels":{"a":"b"},"finalizers":["f"],"ownerReferences":[{"name":"o"}],
               "creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"n":1},"list":[2,1]})",
           R"({"metadata":{"name":"p","labels":{"a":"b"},"finalizers":["f"],"ownerReferences":[{"name":"o"}]},
               "data":{"n":1},"list":[1,2]})",
           R"({"metadata":{"name":"p","labels":{"a":"b"},"ownerReferences":[{"name":"o"}],
               "creationTimestamp":"2026-01-02T03:04:05Z"},"data":{"n":1},"list":[1,2]})",
       }) {
    EXPECT_NE(Masked(kThis), Masked(other)) << other;
  }
}

TEST(EndState, KeepsWhatOnlyLooksLikeATime) {
  EXPECT_NE(Masked(R"({"metadata":{"name":"p"},"x":"2026-01-02 some words"})"),
            Masked(R"({"metadata":{"name":"p"},"x":"2026-01-03 some words"})"));
}

TEST(EndState, JoinsGeneratedNamesAndKeepsTheirNumber) {
  World one(1), two(1);
  Put(one, "pods", R"({"metadata":{"name":"p-x1","namespace":"default","generateName":"p-"}})");
  Put(two, "pods", R"({"metadata":{"name":"p-y2","namespace":"default","generateName":"p-"}})");
  EXPECT_EQ(EndState(one, PlainWorkload()), EndState(two, PlainWorkload()));
  EXPECT_THAT(EndState(one, PlainWorkload()), ElementsAre(Key("pods default/p-*")));

  Put(two, "pods", R"({"metadata":{"name":"p-y3","namespace":"default","generateName":"p-"}})");
  EXPECT_THAT(EndState(two, PlainWorkload()), ElementsAre(Key("pods default/p-*")));
  EXPECT_NE(EndState(one, PlainWorkload()), EndState(two, PlainWorkload())) << "one of them is doubled";
}

TEST(EndState, JoinedObjectsDoNotDependOnTheirOrder) {
  constexpr char kFirst[] = R"({"metadata":{"name":"p-NAME","generateName":"p-"},"data":"1"})";
  constexpr char kSecond[] = R"({"metadata":{"name":"p-NAME","generateName":"p-"},"data":"2"})";
  const auto named = [](std::string text, const char* name) { return text.replace(text.find("NAME"), 4, name); };
  World one(1), two(1);
  Put(one, "pods", named(kFirst, "a"));
  Put(one, "pods", named(kSecond, "b"));
  Put(two, "pods", named(kFirst, "z"));
  Put(two, "pods", named(kSecond, "b"));
  EXPECT_EQ(EndState(one, PlainWorkload()), EndState(two, PlainWorkload()));
}

TEST(EndState, TheWorkloadNamesMasksAndLeavesOut) {
  class Picky final : public PlainWorkload {
    std::string NameOf(std::string_view, const Json&) const override { return "any"; }
    void Mask(std::string_view resource, Json& object) const override {
      if (resource == "nodes") object = Json();
      else object.Erase("status");
    }
  };
  EXPECT_THAT(EndOf(R"({"metadata":{"name":"p","namespace":"default"},"status":1})", "pods", Picky()),
              ElementsAre(Pair("pods default/any", R"({"metadata":{"name":"any","namespace":"default"}})")));
  EXPECT_THAT(EndOf(R"({"metadata":{"name":"n"}})", "nodes", Picky()), IsEmpty());
}

}  // namespace
}  // namespace kube::testing

// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/scheduler_call.h"

#include <gmock/gmock.h>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kPod[] =
    R"({"metadata":{"name":"p","namespace":"team-a","uid":"u-1"},"spec":{"containers":[{"name":"c","resources":{"limits":
       {"ai.centauruscloud.io/gpu-milli":"300"},"requests":{"ai.centauruscloud.io/gpu-milli":"300"}}}]},"status":{}})";

std::string WithPod(const std::string& more) { return R"({"Pod":)" + std::string(kPod) + more + "}"; }

std::string ErrorOf(const auto& result) { return result ? "none" : result.error().message(); }

TEST(SchedulerCall, NodesComeByName) {
  const std::string body = WithPod(R"(,"Nodes":null,"NodeNames":["n1", "n2"])");
  const auto call = ReadNodesCall(body);
  ASSERT_TRUE(call) << call.error().message();
  EXPECT_EQ(call->pod->metadata.uid, "u-1");
  EXPECT_THAT(call->nodes, ElementsAre("n1", "n2"));
  EXPECT_THAT(call->objects, IsEmpty());
  EXPECT_EQ(FilterAnswer(*call, {"", "too \"small\""}), R"({"NodeNames":["n1"],"FailedNodes":{"n2":"too \"small\""}})");
  EXPECT_EQ(PrioritizeAnswer(*call, {0, 10}), R"([{"Host":"n1","Score":0},{"Host":"n2","Score":10}])");
}

TEST(SchedulerCall, WholeNodesGoBackAsTheyCame) {
  const std::string node = R"({"metadata":{"labels":{"name":"no"},"name":"n1"},"status":{"x":[{"y":"}]"}]}})";
  const std::string body = WithPod(R"(,"Nodes":{"metadata":{},"items":[)" + node + R"(,{"metadata":{"name":"n2"}}]})");
  const auto call = ReadNodesCall(body);
  ASSERT_TRUE(call) << call.error().message();
  EXPECT_THAT(call->nodes, ElementsAre("n1", "n2"));
  EXPECT_EQ(FilterAnswer(*call, {"", "no"}), R"({"Nodes":{"items":[)" + node + R"(]},"FailedNodes":{"n2":"no"}})");
}

TEST(SchedulerCall, NamesOfMembersMayBeInLowerCase) {
  const std::string body = R"({"pod":)" + std::string(kPod) + R"(,"nodenames":["n1"]})";
  const auto call = ReadNodesCall(body);
  ASSERT_TRUE(call) << call.error().message();
  EXPECT_THAT(call->nodes, ElementsAre("n1"));
  const auto bind = ReadBindCall(R"({"podName":"p","podNamespace":"a","podUID":"u","node":"n"})");
  ASSERT_TRUE(bind) << bind.error().message();
  EXPECT_EQ(bind->pod, (kube::ObjectKey{"a", "p"}));
  EXPECT_EQ(bind->uid + bind->node, "un");
}

TEST(SchedulerCall, NoNodesIsAnAnswerToo) {
  const std::string body = WithPod(R"(,"NodeNames":[])");
  const auto call = ReadNodesCall(body);
  ASSERT_TRUE(call) << call.error().message();
  EXPECT_EQ(FilterAnswer(*call, {}), R"({"NodeNames":[],"FailedNodes":{}})");
  EXPECT_EQ(PrioritizeAnswer(*call, {}), "[]");
}

TEST(SchedulerCall, VictimsComeByUidOrWhole) {
  const std::string by_uid =
      WithPod(R"(,"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"v1"},{"UID":"v2"}],"NumPDBViolations":3}})");
  const auto call = ReadPreemptCall(by_uid);
  ASSERT_TRUE(call) << call.error().message();
  EXPECT_THAT(call->victims.at("n1").uids, ElementsAre("v1", "v2"));
  EXPECT_EQ(PreemptAnswer(call->victims),
            R"({"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"v1"},{"UID":"v2"}],"NumPDBViolations":3}}})");
  const std::string whole =
      WithPod(R"(,"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"name":"v","uid":"v1"}}]},"n2":{"Pods":null}})");
  const auto second = ReadPreemptCall(whole);
  ASSERT_TRUE(second) << second.error().message();
  EXPECT_THAT(second->victims.at("n1").uids, ElementsAre("v1"));
  EXPECT_THAT(second->victims.at("n2").uids, IsEmpty());
  EXPECT_EQ(PreemptAnswer({}), R"({"NodeNameToMetaVictims":{}})");
}

TEST(SchedulerCall, WhatMakesNoSenseIsNamed) {
  EXPECT_THAT(ErrorOf(ReadNodesCall("")), HasSubstr("the body: expected a JSON object"));
  EXPECT_THAT(ErrorOf(ReadNodesCall("[]")), HasSubstr("the body: expected a JSON object"));
  EXPECT_THAT(ErrorOf(ReadNodesCall("{}")), HasSubstr("Pod: expected the pod to schedule"));
  EXPECT_THAT(ErrorOf(ReadNodesCall(R"({"Pod":{"spec":{}}})")), HasSubstr("Pod.metadata.name: expected"));
  EXPECT_THAT(ErrorOf(ReadNodesCall(R"({"Pod":7})")), HasSubstr("Pod"));
  EXPECT_THAT(ErrorOf(ReadNodesCall(WithPod(R"(,"NodeNames":[7])"))), HasSubstr("NodeNames: expected a string"));
  for (const char* name : {R"(n\"1)", "n\x01", "n 1", "n\xC3\xA4"}) {
    const std::string names = std::string(R"(,"NodeNames":[")") + name + R"("])";
    EXPECT_THAT(ErrorOf(ReadNodesCall(WithPod(names))), HasSubstr("a name of plain characters")) << name;
  }
  EXPECT_THAT(ErrorOf(ReadNodesCall(WithPod(R"(,"NodeNames":["n1")"))), HasSubstr("expected a JSON"));
  EXPECT_THAT(ErrorOf(ReadNodesCall(WithPod(R"(,"Nodes":{"items":[{"metadata":{}}]})"))),
              HasSubstr("Nodes.items.metadata.name: expected the name of each node"));
  EXPECT_THAT(ErrorOf(ReadNodesCall(WithPod(R"(,"Nodes":{"items":[{"metadata":{"name":"a"}}]},"NodeNames":["b"])"))),
              HasSubstr("not both"));
  EXPECT_THAT(ErrorOf(ReadBindCall(R"({"PodName":"p","PodNamespace":"a"})")), HasSubstr("Node: expected"));
  EXPECT_THAT(ErrorOf(ReadBindCall(R"({"PodName":["p"]})")), HasSubstr("PodName: expected a string"));
  EXPECT_THAT(ErrorOf(ReadPreemptCall(WithPod(R"(,"NodeNameToMetaVictims":{"n1":{"Pods":[{}]}})"))),
              HasSubstr("the UID of each pod"));
  EXPECT_THAT(ErrorOf(ReadPreemptCall(WithPod(R"(,"NodeNameToMetaVictims":{"n1":{"NumPDBViolations":"x"}})"))),
              HasSubstr("NumPDBViolations: expected an integer"));
}

TEST(SchedulerCall, ADeepTextIsNoProblem) {
  const std::string deep(100'000, '[');
  EXPECT_FALSE(ReadNodesCall(WithPod(R"(,"NodeNames":)" + deep)));
  const std::string closed = deep + std::string(100'000, ']');
  EXPECT_THAT(ErrorOf(ReadNodesCall(WithPod(R"(,"NodeNames":)" + closed))), HasSubstr("NodeNames: expected a string"));
  EXPECT_FALSE(ReadNodesCall(R"({"Pod":{"metadata":{"name":"p"},"spec":)" + closed + "}}"));
}

TEST(SchedulerCall, AnErrorIsToldInTheAnswer) {
  EXPECT_EQ(ErrorAnswer("no \"room\""), R"({"Error":"no \"room\""})");
  EXPECT_EQ(ErrorAnswer(""), R"({"Error":""})");
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/pod_templates.h"

#include <gtest/gtest.h>

namespace grus {
namespace {

using kube::Json;
using kube::ToText;

Json Parse(const char* text) {
  auto json = kube::ParseJson(text);
  EXPECT_TRUE(json) << text;
  return json ? *std::move(json) : Json();
}

OurContainer Ours() {
  OurContainer ours;
  ours.name = "worker";
  ours.image = "ours:1";
  ours.command = {"/bin/sh", "-c", "run"};
  ours.volume_mounts = Parse(R"([{"name":"ssh","mountPath":"/etc/ssh"}])");
  ours.volumes = Parse(R"([{"name":"ssh","secret":{"secretName":"s"}}])");
  return ours;
}

Json Overlay(const char* user, const OurContainer& ours, const std::string& priority = "") {
  return OverlayTemplate(Parse(user), ours, Parse(R"({"job":"bert"})"), priority);
}

TEST(OverlayTemplate, WithoutATemplateThereIsOurContainer) {
  EXPECT_EQ(Overlay("null", Ours()),
            Parse(R"({"metadata":{"labels":{"job":"bert"}},"spec":{"containers":[{"name":"worker","image":"ours:1",
                      "command":["/bin/sh","-c","run"],"volumeMounts":[{"name":"ssh","mountPath":"/etc/ssh"}]}],
                      "volumes":[{"name":"ssh","secret":{"secretName":"s"}}]}})"));
}

TEST(OverlayTemplate, KeepsWhatTheUserSaysAndOursWin) {
  const Json pod = Overlay(
      R"({"metadata":{"labels":{"team":"nlp","job":"other"},"annotations":{"a":"b"}},
          "spec":{"nodeSelector":{"gpu":"a100"},"volumes":[{"name":"data","emptyDir":{}},{"name":"ssh","emptyDir":{}}],
                  "containers":[{"name":"sidecar","image":"log:1"},
                                {"name":"worker","image":"theirs:1","command":["sleep"],"args":["1"],
                                 "env":[{"name":"X","value":"1"}],
                                 "volumeMounts":[{"name":"data","mountPath":"/data"},
                                                 {"name":"data","mountPath":"/etc/ssh"}]}]}})",
      Ours());
  EXPECT_EQ(pod, Parse(R"({"metadata":{"labels":{"team":"nlp","job":"bert"},"annotations":{"a":"b"}},
          "spec":{"nodeSelector":{"gpu":"a100"},
                  "volumes":[{"name":"data","emptyDir":{}},{"name":"ssh","secret":{"secretName":"s"}}],
                  "containers":[{"name":"sidecar","image":"log:1"},
                                {"name":"worker","image":"ours:1","command":["/bin/sh","-c","run"],
                                 "env":[{"name":"X","value":"1"}],
                                 "volumeMounts":[{"name":"data","mountPath":"/data"},
                                                 {"name":"ssh","mountPath":"/etc/ssh"}]}]}})"))
      << ToText(pod);
}

TEST(OverlayTemplate, OurContainerComesFirstBesideOthers) {
  const Json pod = Overlay(R"({"spec":{"containers":[{"name":"sidecar"}]}})", Ours());
  const Json::Array& containers = *pod.At({"spec", "containers"})->AsArray();
  ASSERT_EQ(containers.size(), 2U);
  EXPECT_EQ(*containers[0].Find("name"), Json("worker"));
}

TEST(OverlayTemplate, GpusAreLimitsAndRequestsAndLeaveOthersAlone) {
  OurContainer ours = Ours();
  ours.devices = {"nvidia.com/gpu", 4};
  const Json pod = Overlay(
      R"({"spec":{"containers":[{"name":"worker","resources":{"limits":{"memory":"8Gi","nvidia.com/gpu":1}}}]}})",
      ours);
  EXPECT_EQ(*pod.At({"spec", "containers"})->AsArray()->front().Find("resources"),
            Parse(R"({"limits":{"memory":"8Gi","nvidia.com/gpu":"4"},"requests":{"nvidia.com/gpu":"4"}})"));

  const Json none = Overlay("null", Ours());
  EXPECT_EQ(none.At({"spec", "containers"})->AsArray()->front().Find("resources"), nullptr);
}

TEST(OverlayTemplate, ThePriorityClassOfTheJobWins) {
  const char* const kUser = R"({"spec":{"priorityClassName":"theirs"}})";
  EXPECT_EQ(*Overlay(kUser, Ours()).At({"spec", "priorityClassName"}), Json("theirs"));
  EXPECT_EQ(*Overlay(kUser, Ours(), "ours").At({"spec", "priorityClassName"}), Json("ours"));
}

TEST(OverlayTemplate, WhatIsNoTemplateIsPassedOnForTheApiServerToRefuse) {
  OurContainer ours = Ours();
  ours.devices = {"nvidia.com/gpu", 1};
  EXPECT_EQ(Overlay(R"("text")", ours), Json("text"));
  EXPECT_EQ(*Overlay(R"({"spec":"text"})", ours).Find("spec"), Json("text"));
  EXPECT_EQ(*Overlay(R"({"metadata":7})", ours).Find("metadata"), Json(7));
  EXPECT_EQ(*Overlay(R"({"metadata":{"labels":[]}})", ours).At({"metadata", "labels"}), Json::MakeArray());
  EXPECT_EQ(*Overlay(R"({"spec":{"containers":{}}})", ours).At({"spec", "containers"}), Json::MakeObject());
  EXPECT_EQ(*Overlay(R"({"spec":{"volumes":"v"}})", ours).At({"spec", "volumes"}), Json("v"));
  for (const char* odd :
       {R"({"spec":{"containers":[1,null,"x",[]]}})", R"({"spec":{"containers":[{"name":"worker","resources":5}]}})",
        R"({"spec":{"containers":[{"name":"worker","resources":{"limits":[]},"volumeMounts":3}]}})"}) {
    Overlay(odd, ours, "p");  // Nothing worse than a refusal.
  }
}

TEST(PreferNode, PrefersTheNodeAndKeepsTheSchedulerFromSpreading) {
  Json spec = Parse(R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{}}}})");
  PreferNode(spec, "n1");
  EXPECT_EQ(spec, Parse(R"({"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{},
      "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":100,"preference":{"matchFields":[
          {"key":"metadata.name","operator":"In","values":["n1"]}]}}]}},
      "topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"kubernetes.io/hostname",
                                    "whenUnsatisfiable":"ScheduleAnyway"}]})"));
}

TEST(PreferNode, ARuleSaysWhereAPodMayRunAndNotWhereItShould) {
  Json spec = *kube::ParseJson(
      R"({"topologySpreadConstraints":[{"maxSkew":4,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}]})");
  PreferNode(spec, "n1");
  EXPECT_NE(spec.Find("affinity"), nullptr);
  EXPECT_EQ(spec.Find("topologySpreadConstraints")->AsArray()->size(), 2U);
}

TEST(PreferNode, LeavesAloneWhatTheUserSays) {
  for (const char* text :
       {R"({"topologySpreadConstraints":[]})", R"({"affinity":"x"})", R"({"affinity":{"nodeAffinity":[]}})", "7",
        R"({"affinity":{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[]}}})", "null"}) {
    Json spec = Parse(text);
    PreferNode(spec, "n1");
    EXPECT_EQ(spec, Parse(text)) << text;
  }
}

TEST(MergeNamed, ReplacesTheSameNameAndAddsTheRest) {
  Json object = Parse(R"({"list":[{"name":"a","v":1},{"v":2},{"name":"b"}]})");
  MergeNamed(object, "list", Parse(R"([{"name":"a","v":9},{"name":"c"},{"v":3}])"), "name");
  EXPECT_EQ(object, Parse(R"({"list":[{"v":2},{"name":"b"},{"name":"a","v":9},{"name":"c"},{"v":3}]})"));
}

TEST(MergeNamed, LeavesAloneWhatItCannotMergeInto) {
  for (const char* text : {"3", R"("x")", "[]", R"({"list":"x"})", R"({"list":{}})"}) {
    Json object = Parse(text);
    MergeNamed(object, "list", Parse(R"([{"name":"a"}])"), "name");
    EXPECT_EQ(object, Parse(text)) << text;
  }
  Json untouched = Json::MakeObject();
  MergeNamed(untouched, "list", Json::MakeArray(), "name");
  EXPECT_EQ(untouched, Json::MakeObject());
}

}  // namespace
}  // namespace grus

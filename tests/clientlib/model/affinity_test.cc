// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/affinity.h"

#include <gtest/gtest.h>

#include "clientlib/model/pod.h"

namespace kube {
namespace {

TEST(NodeSelectorRequirement, MatchesAsTheSchedulerDoes) {
  const StringMap labels = {{"zone", "a"}, {"gpus", "8"}, {"empty", ""}};
  struct Case {
    NodeSelectorRequirement requirement;
    bool matches;
  };
  const Case kCases[] = {
      {{"zone", "In", {"a", "b"}}, true},    {{"zone", "In", {"b"}}, false},
      {{"missing", "In", {"a"}}, false},     {{"empty", "In", {""}}, true},
      {{"zone", "NotIn", {"b"}}, true},      {{"zone", "NotIn", {"a"}}, false},
      {{"missing", "NotIn", {"a"}}, true},   {{"zone", "Exists", {}}, true},
      {{"missing", "Exists", {}}, false},    {{"missing", "DoesNotExist", {}}, true},
      {{"zone", "DoesNotExist", {}}, false}, {{"gpus", "Gt", {"4"}}, true},
      {{"gpus", "Gt", {"8"}}, false},        {{"gpus", "Lt", {"9"}}, true},
      {{"gpus", "Lt", {"8"}}, false},        {{"zone", "Gt", {"4"}}, false},
      {{"gpus", "Gt", {"4", "5"}}, false},   {{"gpus", "Gt", {"many"}}, false},
      {{"missing", "Lt", {"9"}}, false},     {{"zone", "Near", {"a"}}, false},
  };
  for (const Case& c : kCases) {
    EXPECT_EQ(c.requirement.Matches(labels), c.matches) << c.requirement.key << " " << c.requirement.op;
  }
}

TEST(NodeSelector, OneTermMustMatchAndAllOfIt) {
  const NodeSelectorRequirement a{"zone", "In", {"a"}}, gpus{"gpus", "Exists", {}}, b{"zone", "In", {"b"}};
  const NodeSelectorRequirement on_n1{"metadata.name", "In", {"n1"}};
  const StringMap labels = {{"zone", "a"}, {"gpus", "8"}};
  const auto matches = [&](std::vector<NodeSelectorTerm> terms) {
    return NodeSelector{std::move(terms)}.Matches(labels, "n1");
  };
  EXPECT_TRUE(matches({{{a, gpus}, {}}}));
  EXPECT_FALSE(matches({{{a, b}, {}}}));
  EXPECT_TRUE(matches({{{b}, {}}, {{a}, {}}}));
  EXPECT_TRUE(matches({{{a}, {on_n1}}}));
  EXPECT_FALSE(matches({{{a}, {{"metadata.name", "NotIn", {"n1"}}}}}));
  EXPECT_FALSE(matches({{{}, {}}})) << "a term without requirements matches nothing";
  EXPECT_FALSE(matches({}));
}

TEST(Affinity, IsReadFromAPod) {
  const Result<std::shared_ptr<Pod>> pod =
      Decode<Pod>(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{
    "containers":[{"name":"c","ports":[{"containerPort":80},{"containerPort":22,"hostPort":2222,"protocol":"TCP"}]}],
    "topologySpreadConstraints":[{"maxSkew":2,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule",
                                  "labelSelector":{"matchLabels":{"app":"x"}},"minDomains":3}],
    "affinity":{
      "nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
          {"matchExpressions":[{"key":"gpu","operator":"In","values":["a100"]}]}]},
        "preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1,"preference":{}}]},
      "podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[
          {"topologyKey":"kubernetes.io/hostname","labelSelector":{"matchLabels":{"app":"x"}},"namespaceSelector":{}}]}}}})");
  ASSERT_TRUE(pod) << pod.error().message();
  const PodSpec& spec = (*pod)->spec;
  ASSERT_TRUE(spec.affinity);
  EXPECT_TRUE(spec.affinity->node->required->Matches({{"gpu", "a100"}}, "n"));
  EXPECT_FALSE(spec.affinity->pod);
  const PodAffinityTerm& term = spec.affinity->pod_anti->required.at(0);
  EXPECT_EQ(term.topology_key, "kubernetes.io/hostname");
  EXPECT_TRUE(term.label_selector->Matches({{"app", "x"}}));
  EXPECT_TRUE(term.namespace_selector) << "an empty one means all namespaces";
  EXPECT_EQ(spec.topology_spread.at(0).max_skew, 2);
  EXPECT_EQ(spec.topology_spread.at(0).min_domains, 3);
  EXPECT_EQ(spec.containers.at(0).ports.at(1).host_port, 2222);
}

}  // namespace
}  // namespace kube

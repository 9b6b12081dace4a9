// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "clientlib/model/json.h"
#include "tests/kit/must.h"
#include "tests/kit/tree_file.h"

namespace kube {
namespace {

using kit::FromText;

TEST(IsCovered, RulesOneByOne) {
  struct Case {
    const char* rule;
    bool is_covered;
    const char *wanted, *live;
  };
  const Case kCases[] = {
      {"equal", true, R"({"a":1})", R"({"a":1})"},
      {"another value", false, R"({"a":1})", R"({"a":2})"},
      {"fields of others", true, R"({"a":1})", R"({"a":1,"b":2})"},
      {"a missing field", false, R"({"a":1,"b":2})", R"({"a":1})"},
      {"another type", false, R"({"a":1})", R"({"a":"1"})"},
      {"empty equals missing", true, R"({"a":null,"b":false,"c":0,"d":"","e":[],"f":{},"g":{"h":""}})", "{}"},
      {"a set flag is not missing", false, R"({"a":true})", "{}"},
      {"an empty string is not any string", false, R"({"a":""})", R"({"a":"x"})"},
      {"false is not true", false, R"({"a":false})", R"({"a":true})"},
      {"an empty list is not any list", false, R"({"a":[]})", R"({"a":[1]})"},
      {"an empty object asks for nothing", true, R"({"a":{}})", R"({"a":{"b":1}})"},
      {"integer and number", true, R"({"a":1})", R"({"a":1.0})"},
      {"lists by position", true, R"(["a","b"])", R"(["a","b"])"},
      {"lists in another order", false, R"(["a","b"])", R"(["b","a"])"},
      {"lists of another length", false, R"(["a"])", R"(["a","b"])"},
      {"items by name, in any order, with items of others", true, R"([{"name":"a","x":1},{"name":"b"}])",
       R"([{"name":"sidecar"},{"name":"b"},{"name":"a","x":1,"y":2}])"},
      {"an item of that name is missing", false, R"([{"name":"a"}])", R"([{"name":"b"}])"},
      {"an item differs", false, R"([{"name":"a","x":1}])", R"([{"name":"a","x":2}])"},
      {"two mounts of one volume", true, R"([{"name":"v","mountPath":"/a"},{"name":"v","mountPath":"/b"}])",
       R"([{"name":"v","mountPath":"/b"},{"name":"v","mountPath":"/a"}])"},
      {"ports by number", true, R"([{"containerPort":22}])",
       R"([{"containerPort":80},{"containerPort":22,"protocol":"TCP"}])"},
      {"quantities by value", true, R"({"requests":{"cpu":"0.5","memory":"1Gi"}})",
       R"({"requests":{"cpu":"500m","memory":"1024Mi"}})"},
      {"quantities as numbers", true, R"({"limits":{"nvidia.com/gpu":8}})", R"({"limits":{"nvidia.com/gpu":"8"}})"},
      {"another quantity", false, R"({"limits":{"cpu":"1"}})", R"({"limits":{"cpu":"2"}})"},
      {"other strings are no quantities", false, R"({"value":"0.5"})", R"({"value":"500m"})"},
  };
  for (const Case& c : kCases) EXPECT_EQ(IsCovered(FromText(c.wanted), FromText(c.live)), c.is_covered) << c.rule;
}

std::string WantedSet() { return kit::ReadTreeFile("tests/clientlib/model/stateful_set_wanted.json"); }
// As the API server gives it back: defaults filled in, quantities in canonical form.
std::string LiveSet() { return kit::ReadTreeFile("tests/clientlib/model/stateful_set_live.json"); }

TEST(IsCovered, ItemsOfOneKeyMayStandInAnyOrder) {
  const Json wanted = FromText(R"([{"name":"a","x":1},{"name":"b"},{"name":"a","x":2}])");
  EXPECT_TRUE(IsCovered(wanted, FromText(R"([{"name":"a","x":2},{"name":"a","x":1},{"name":"b"}])")));
  EXPECT_TRUE(IsCovered(wanted, FromText(R"([{"name":"b"},{"name":"a","x":2},{"name":"a","x":1}])")));
  EXPECT_FALSE(IsCovered(wanted, FromText(R"([{"name":"b"},{"name":"a","x":2},{"name":"a","x":3}])")));
}

TEST(IsCovered, DefaultsOfAStatefulSetAreNoDrift) {
  EXPECT_TRUE(IsCovered(FromText(WantedSet()), FromText(LiveSet())));
}

TEST(IsCovered, EachChangeOfAStatefulSetIsDrift) {
  const std::pair<const char*, const char*> kChanges[] = {
      {R"("replicas":4)", R"("replicas":5)"},
      {"horovod:1", "horovod:2"},
      {R"("cpu":"500m")", R"("cpu":"501m")"},
      {R"("cpu":"500m",)", ""},
      {"/etc/ssh-keys", "/etc/ssh"},
      {R"("containerPort":2222)", R"("containerPort":22)"},
      {R"("name":"worker")", R"("name":"other")"},
      {R"(,"-De"])", "]"},
      {R"("readOnly":true,)", ""},
      {R"("medium":"Memory")", R"("medium":"")"},
  };
  for (const auto& [from, to] : kChanges) {
    std::string live = LiveSet();
    const std::size_t at = live.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    live.replace(at, std::string_view(from).size(), to);
    EXPECT_FALSE(IsCovered(FromText(WantedSet()), FromText(live))) << from;
  }
}

TEST(IsCovered, DefaultsOfAJobAreNoDrift) {
  const Json wanted = FromText(R"({"backoffLimit":0,"parallelism":1,"completions":1,"suspend":false,
    "template":{"spec":{"restartPolicy":"Never","containers":[{"name":"launcher","image":"horovod:1",
      "command":["sh","-c","horovodrun -np 4 python train.py"],"resources":{"requests":{"memory":"1024Mi"}}}]}}})");
  const Json live = FromText(R"({"parallelism":1,"completions":1,"backoffLimit":0,
    "selector":{"matchLabels":{"batch.kubernetes.io/controller-uid":"5d3bb1f0"}},
    "template":{"metadata":{"creationTimestamp":null,"labels":{"batch.kubernetes.io/controller-uid":"5d3bb1f0",
      "batch.kubernetes.io/job-name":"bert-launcher","controller-uid":"5d3bb1f0","job-name":"bert-launcher"}},
    "spec":{"containers":[{"name":"launcher","image":"horovod:1","command":["sh","-c",
      "horovodrun -np 4 python train.py"],"resources":{"requests":{"memory":"1Gi"}},
      "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"Always"}],
      "restartPolicy":"Never","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","securityContext":{},
      "schedulerName":"default-scheduler"}},
    "completionMode":"NonIndexed","suspend":false,"podReplacementPolicy":"TerminatingOrFailed"})");
  EXPECT_TRUE(IsCovered(wanted, live));

  Json resumed = live;
  resumed["suspend"] = true;
  EXPECT_FALSE(IsCovered(wanted, resumed));
}

}  // namespace
}  // namespace kube

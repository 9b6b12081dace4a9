// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/spec_values.h"

#include <stdexcept>
#include <string>

namespace grus::testing {
namespace {

using kube::Json;

// NAME stands for the name of our container.
constexpr const char* kTemplates[] = {
    R"({})",
    R"({"metadata":{"labels":{"team":"vision"},"annotations":{"note":"ünïcödé 🚀"}}})",
    R"({"metadata":{"labels":{"ai.centauruscloud.io/role":"other","ai.centauruscloud.io/job-name":"other"}}})",
    R"({"spec":{"containers":[{"name":"NAME","env":[{"name":"A","value":"1"},{"name":"B","value":""}]}]}})",
    R"({"spec":{"containers":[{"name":"NAME","image":"theirs:1","command":["sleep"],"args":["1"]}]}})",
    R"({"spec":{"containers":[{"name":"NAME","resources":{"requests":{"cpu":"1500m","memory":"2Gi"},"limits":{"memory":"2Gi"}}}]}})",
    R"({"spec":{"containers":[{"name":"NAME","resources":{"requests":{"cpu":"97"}}}]}})",
    R"({"spec":{"containers":[{"name":"side","image":"side:1"}],"initContainers":[{"name":"first","image":"first:1"}]}})",
    R"({"spec":{"containers":[{"name":"side"}]}})",
    R"({"spec":{"containers":"none"}})",
    R"({"spec":{"containers":[]}})",
    R"({"spec":{"nodeSelector":{"kubernetes.io/hostname":"node-0"}}})",
    R"({"spec":{"nodeSelector":{"disk":"none-has-this"}}})",
    R"({"spec":{"tolerations":[{"operator":"Exists"}],"terminationGracePeriodSeconds":7}})",
    R"({"spec":{"volumes":[{"name":"scratch","emptyDir":{}}],"serviceAccountName":"trainer"}})",
    R"({"spec":{"volumes":[{"name":"grus-job","emptyDir":{}}]}})",
    R"({"spec":{"restartPolicy":"Always","hostNetwork":true,"dnsPolicy":"ClusterFirstWithHostNet"}})",
    R"({"spec":{"schedulingGates":[{"name":"theirs.test/gate"}]}})",
    R"({"unknown":{"field":1}})",
};
constexpr const char* kContainers[] = {
    R"({})",
    R"({"name":"any","volumeMounts":[]})",
    R"({"name":"any","volumeMounts":"none"})",
    R"({"name":"any","volumeMounts":[{"name":"grus-job","mountPath":"/extra"}]})",
    R"({"name":"any","volumeMounts":[{"name":"not-there","mountPath":"/extra"}]})",
};
constexpr const char* kVolumes[] = {
    R"({"name":"data","emptyDir":{}})",
    R"({"name":"data","hostPath":{"path":"/data","type":"Directory"}})",
    R"({"name":"grus-job","emptyDir":{}})",
    R"({})",
};
constexpr const char* kUnknown[] = {R"({})", R"({"field":"value"})"};

template <std::size_t N>
std::vector<Json> Parse(const char* const (&texts)[N], const std::string& name) {
  std::vector<Json> values;
  for (std::string text : texts) {
    if (const std::size_t at = text.find("NAME"); at != std::string::npos) text.replace(at, 4, name);
    kube::Result<Json> value = kube::ParseJson(text);
    if (!value) throw std::logic_error(text + ": " + value.error().message());
    values.push_back(*std::move(value));
  }
  return values;
}

}  // namespace

std::vector<Json> FreeObjects(std::string_view path) {
  const std::string name = path.find("launcher") != std::string_view::npos ? "launcher" : "worker";
  if (path.ends_with(".template")) return Parse(kTemplates, name);
  if (path.ends_with(".containers")) return Parse(kContainers, name);
  if (path.ends_with(".volumes")) return Parse(kVolumes, name);
  return Parse(kUnknown, name);
}

}  // namespace grus::testing

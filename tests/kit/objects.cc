// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/objects.h"

#include <utility>

#include "clientlib/client/patch.h"
#include "tests/kit/must.h"

namespace kit {

using kube::Json;

Json MakeObject(std::string_view api_version, std::string_view kind, const std::string& name, const std::string& ns) {
  Json object = Json::MakeObject({{"apiVersion", api_version}, {"kind", kind}});
  object["metadata"]["name"] = name;
  if (!ns.empty()) object["metadata"]["namespace"] = ns;
  return object;
}

Json PodSpec(std::int64_t units, std::string_view more, const std::string& resource) {
  Json container = Json::MakeObject({{"name", "c"}, {"image", "registry.test/x"}});
  if (units > 0) container["resources"]["limits"][resource] = std::to_string(units);
  Json spec = Json::MakeObject();
  spec["containers"].Append(std::move(container));
  kube::MergePatch(spec, FromText(more));
  return spec;
}

Json Gated(Json pod_spec) {
  pod_spec["schedulingGates"].Append(Json::MakeObject({{"name", api::kGangGate}}));
  return pod_spec;
}

Json MemberOf(const std::string& group, const std::string& label) { return Json::MakeObject({{label, group}}); }

Json MakePod(const std::string& name, Json pod_spec, Json labels, const std::string& ns) {
  Json pod = MakeObject("v1", "Pod", name, ns);
  if (labels.is_object()) pod["metadata"]["labels"] = std::move(labels);
  pod["spec"] = std::move(pod_spec);
  return pod;
}

Json MakeStatefulSet(const std::string& name, int replicas, Json pod_spec, Json labels, const std::string& ns) {
  Json set = MakeObject("apps/v1", "StatefulSet", name, ns);
  Json& spec = set["spec"];
  spec["podManagementPolicy"] = "Parallel";
  spec["serviceName"] = name;
  spec["replicas"] = replicas;
  spec["selector"]["matchLabels"]["app"] = name;
  if (labels.is_object()) spec["template"]["metadata"]["labels"] = std::move(labels);
  spec["template"]["metadata"]["labels"]["app"] = name;
  spec["template"]["spec"] = std::move(pod_spec);
  return set;
}

Json MakeJob(const std::string& name, int pods, Json pod_spec, Json labels, const std::string& ns) {
  Json job = MakeObject("batch/v1", "Job", name, ns);
  Json& spec = job["spec"];
  spec["parallelism"] = pods;
  spec["completions"] = pods;
  if (labels.is_object()) spec["template"]["metadata"]["labels"] = std::move(labels);
  spec["template"]["spec"] = std::move(pod_spec);
  spec["template"]["spec"]["restartPolicy"] = "Never";
  return job;
}

Json MakePodGroup(const std::string& name, int min_member, std::string_view more, const std::string& ns,
                  const kube::Kind& kind) {
  Json group = MakeObject(std::string(kind.group) + "/v1alpha1", kind.kind, name, ns);
  group["spec"] = FromText(more);
  group["spec"]["minMember"] = min_member;
  return group;
}

Json MakeNode(const std::string& name, int gpus) {
  Json node = MakeObject("v1", "Node", name);
  node["metadata"]["labels"] = Json::MakeObject({{"kubernetes.io/hostname", name}, {"kubernetes.io/os", "linux"}});
  Json room = Json::MakeObject({{"cpu", "96"}, {"memory", "1Ti"}, {"pods", "256"}});
  if (gpus > 0) room[kGpus] = std::to_string(gpus);
  node["status"]["capacity"] = room;
  node["status"]["allocatable"] = std::move(room);
  return node;
}

Json MakePriorityClass(const std::string& name, int value, std::string_view preemption_policy) {
  Json made = MakeObject("scheduling.k8s.io/v1", "PriorityClass", name);
  made["value"] = value;
  made["preemptionPolicy"] = preemption_policy;
  return made;
}

}  // namespace kit

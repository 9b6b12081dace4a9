// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/pod_templates.h"

#include <algorithm>

#include "controllers/policy/gpu_parts.h"
#include "controllers/policy/json_default.h"

namespace grus {
namespace {

using kube::Json;

std::string NameOf(const Json& item, std::string_view name_key) {
  const Json* name = item.Find(name_key);
  return name && name->AsString() ? *name->AsString() : std::string();
}

// Whether an object in `list` has that value at `key`. `list` may be null, or no array.
bool HasItem(const Json* list, std::string_view key, const Json& value) {
  if (list == nullptr || !list->is_array()) return false;
  return std::any_of(list->AsArray()->begin(), list->AsArray()->end(), [&](const Json& item) {
    const Json* found = item.Find(key);
    return found && *found == value;
  });
}

// Keeps the amounts that the user states.
void AskForDevices(Json& container, const WorkerDevices& devices) {
  Json& resources = container["resources"];
  if (!resources.is_null() && !resources.is_object()) return;
  if (IsGpuPart(devices.resource)) return;
  for (const char* list : {"limits", "requests"}) {
    Json& amounts = resources[list];
    if (!amounts.is_null() && !amounts.is_object()) continue;
    if (devices.is_stated && amounts.Find(devices.resource) != nullptr) continue;
    amounts[devices.resource] = std::to_string(devices.count);
  }
}

// Our container in the user's list: merged with one of the same name, else put first.
void OverlayContainer(Json& spec, const OurContainer& ours) {
  Json& containers = spec["containers"];
  if (!containers.is_null() && !containers.is_array()) return;  // The API server says what is wrong.
  if (containers.is_null()) containers = Json::MakeArray();
  Json::Array& list = *containers.AsArray();
  auto found = std::find_if(list.begin(), list.end(), [&](const Json& c) { return NameOf(c, "name") == ours.name; });
  if (found == list.end()) found = list.insert(list.begin(), Json::MakeObject({{"name", ours.name}}));

  Json& container = *found;
  container["image"] = ours.image;
  container["command"] = Json(Json::Array(ours.command.begin(), ours.command.end()));
  container.Erase("args");
  MergeNamed(container, "volumeMounts", ours.volume_mounts, "mountPath");
  for (const Json& mount : ours.default_mounts) {
    if (HasItem(container.Find("volumeMounts"), "mountPath", *mount.Find("mountPath"))) continue;
    MergeNamed(container, "volumeMounts", Json::MakeArray({mount}), "mountPath");
  }
  for (const auto& [path, value] : ours.defaults) SetDefault(container, path, value);
  const Json* host_network = spec.Find("hostNetwork");
  const bool is_on_host = host_network && *host_network == Json(true);
  if (is_on_host && ours.port > 0 && !HasItem(container.Find("ports"), "containerPort", ours.port)) {
    Json port = Json::MakeObject({{"name", "grus-ssh"}, {"protocol", "TCP"}});
    port["containerPort"] = port["hostPort"] = ours.port;
    MergeNamed(container, "ports", Json::MakeArray({std::move(port)}), "name");
  }
  if (ours.devices.count > 0) AskForDevices(container, ours.devices);
}

constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

// The user's own word on where the pod should run, or what only the API server can judge.
bool SaysWhere(const Json& spec) {
  if (const Json* spread = spec.Find("topologySpreadConstraints")) {
    const auto is_rule = [](const Json& one) {
      const Json* when = one.Find("whenUnsatisfiable");
      return when != nullptr && *when == Json("DoNotSchedule");
    };
    if (!spread->is_array() || spread->AsArray()->empty() || !std::ranges::all_of(*spread->AsArray(), is_rule))
      return true;
  }
  const Json* affinity = spec.Find("affinity");
  if (affinity == nullptr) return false;
  if (!affinity->is_object()) return true;
  for (const auto& [kind, rules] : *affinity->AsObject()) {
    if (!rules.is_object() || rules.Find(kPreferred) != nullptr) return true;
  }
  return false;
}

}  // namespace

void PreferNode(Json& spec, const std::string& node) {
  if (!spec.is_object() || SaysWhere(spec)) return;
  Json is_node = Json::MakeObject({{"key", "metadata.name"}, {"operator", "In"}});
  is_node["values"].Append(node);
  Json preferred = Json::MakeObject({{"weight", 100}});
  preferred["preference"]["matchFields"].Append(std::move(is_node));
  spec["affinity"]["nodeAffinity"][kPreferred].Append(std::move(preferred));
  // Without a selector it counts no pods.
  spec["topologySpreadConstraints"].Append(Json::MakeObject(
      {{"maxSkew", 1}, {"topologyKey", "kubernetes.io/hostname"}, {"whenUnsatisfiable", "ScheduleAnyway"}}));
}

void MergeNamed(Json& object, std::string_view key, const Json& items, std::string_view name_key) {
  if (!items.is_array() || items.AsArray()->empty() || (!object.is_null() && !object.is_object())) return;
  Json& target = object[key];
  if (target.is_null()) target = Json::MakeArray();
  if (!target.is_array()) return;
  Json::Array& list = *target.AsArray();
  for (const Json& item : *items.AsArray()) {
    const std::string name = NameOf(item, name_key);
    std::erase_if(list, [&](const Json& other) { return !name.empty() && NameOf(other, name_key) == name; });
    list.push_back(item);
  }
}

Json OverlayTemplate(const Json& user_template, const OurContainer& ours, const Json& labels,
                     const std::string& priority_class_name) {
  Json pod = user_template;
  if (pod.is_null()) pod = Json::MakeObject();
  if (!pod.is_object()) return pod;
  Json& metadata = pod["metadata"];
  if (metadata.is_null() || metadata.is_object()) {
    Json& pod_labels = metadata["labels"];
    if (pod_labels.is_null() || pod_labels.is_object()) {
      for (const auto& [key, value] : *labels.AsObject()) pod_labels[key] = value;
    }
  }
  Json& spec = pod["spec"];
  if (!spec.is_null() && !spec.is_object()) return pod;
  OverlayContainer(spec, ours);
  MergeNamed(spec, "volumes", ours.volumes, "name");
  if (!priority_class_name.empty()) spec["priorityClassName"] = priority_class_name;
  return pod;
}

}  // namespace grus

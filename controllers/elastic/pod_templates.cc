// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/pod_templates.h"

#include <algorithm>

#include "controllers/policy/resources.h"

namespace grus {
namespace {

using kube::Json;

std::string NameOf(const Json& item, std::string_view name_key) {
  const Json* name = item.Find(name_key);
  return name && name->AsString() ? *name->AsString() : std::string();
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
  Json command = Json::MakeArray();
  for (const std::string& word : ours.command) command.Append(word);
  container["command"] = std::move(command);
  container.Erase("args");
  MergeNamed(container, "volumeMounts", ours.volume_mounts, "mountPath");
  if (ours.gpus > 0) {
    Json& resources = container["resources"];
    if (resources.is_null() || resources.is_object()) {
      for (const char* list_name : {"limits", "requests"}) {
        Json& amounts = resources[list_name];
        if (amounts.is_null() || amounts.is_object()) amounts[kGpuResource] = std::to_string(ours.gpus);
      }
    }
  }
}

}  // namespace

void MergeNamed(Json& object, std::string_view key, const Json& items, std::string_view name_key) {
  if (items.AsArray() == nullptr || items.AsArray()->empty()) return;
  if (!object.is_null() && !object.is_object()) return;
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

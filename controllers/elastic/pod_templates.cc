// SPDX-License-Identifier: Apache-2.0
#include "controllers/elastic/pod_templates.h"

#include <algorithm>
#include <span>

namespace grus {
namespace {

using kube::Json;

std::string NameOf(const Json& item, std::string_view name_key) {
  const Json* name = item.Find(name_key);
  return name && name->AsString() ? *name->AsString() : std::string();
}

bool HasMount(const Json& container, const std::string& path) {
  const Json* mounts = container.Find("volumeMounts");
  return mounts && mounts->AsArray() &&
         std::any_of(mounts->AsArray()->begin(), mounts->AsArray()->end(),
                     [&](const Json& mount) { return NameOf(mount, "mountPath") == path; });
}

// Sets the field at `path`, unless it is there or the way to it is something else than objects.
void SetDefault(Json& object, std::span<const std::string> path, const Json& value) {
  if (!object.is_null() && !object.is_object()) return;
  Json& member = object[path.front()];
  if (path.size() > 1) SetDefault(member, path.subspan(1), value);
  else if (member.is_null()) member = value;
}

bool HasPort(const Json& container, int port) {
  const Json* ports = container.Find("ports");
  return ports && ports->AsArray() &&
         std::any_of(ports->AsArray()->begin(), ports->AsArray()->end(), [port](const Json& item) {
           const Json* number = item.Find("containerPort");
           return number && number->AsInt() && *number->AsInt() == port;
         });
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
  for (const Json& mount : ours.default_mounts.is_array() ? *ours.default_mounts.AsArray() : Json::Array()) {
    if (HasMount(container, NameOf(mount, "mountPath"))) continue;
    MergeNamed(container, "volumeMounts", Json::MakeArray({mount}), "mountPath");
  }
  for (const auto& [path, value] : ours.defaults) SetDefault(container, path, value);
  const Json* host_network = spec.Find("hostNetwork");
  const bool is_on_host = host_network && host_network->AsBool() && *host_network->AsBool();
  if (is_on_host && ours.port > 0 && !HasPort(container, ours.port)) {
    Json port = Json::MakeObject({{"name", "grus-ssh"}, {"protocol", "TCP"}});
    port["containerPort"] = port["hostPort"] = ours.port;
    MergeNamed(container, "ports", Json::MakeArray({std::move(port)}), "name");
  }
  if (ours.devices > 0) {
    Json& resources = container["resources"];
    if (resources.is_null() || resources.is_object()) {
      for (const char* list_name : {"limits", "requests"}) {
        Json& amounts = resources[list_name];
        if (!amounts.is_null() && !amounts.is_object()) continue;
        if (!ours.is_device_stated || amounts.Find(ours.device) == nullptr) {
          amounts[ours.device] = std::to_string(ours.devices);
        }
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

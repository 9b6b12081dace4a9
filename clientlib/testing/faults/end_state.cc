// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/faults/end_state.h"

#include <algorithm>
#include <vector>

#include "clientlib/model/time.h"

namespace kube::testing {
namespace {

constexpr std::string_view kVolatile[] = {"uid",           "resourceVersion",
                                          "generation",    "observedGeneration",
                                          "managedFields", "podIP",
                                          "podIPs",        "hostIP",
                                          "hostIPs",       "clusterIP",
                                          "clusterIPs",    "nodeName",
                                          "containerID",   "controller-revision-hash"};

bool IsVolatile(std::string_view name) {
  return std::find(std::begin(kVolatile), std::end(kVolatile), name) != std::end(kVolatile) ||
         name.ends_with("controller-uid") || name.ends_with("Revision") || name.ends_with("revision-hash");
}

// Names that carry a UID: "train-ssh-00feef93-d876-46e6-81b1-336b4768db16".
std::string WithoutUids(const std::string& text) {
  constexpr std::string_view kShape = "hhhhhhhh-hhhh-hhhh-hhhh-hhhhhhhhhhhh";
  const auto is_uid = [&](std::size_t at) {
    for (std::size_t i = 0; i < kShape.size(); ++i) {
      const char c = text[at + i];
      if (kShape[i] == '-' ? c != '-' : !((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    return true;
  };
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    if (i + kShape.size() <= text.size() && is_uid(i)) {
      result += "UID";
      i += kShape.size();
    } else {
      result += text[i++];
    }
  }
  return result;
}

// Sorts members, removes volatile ones, and replaces times and UIDs.
void Normalise(Json& value) {
  if (Json::Object* object = value.AsObject()) {
    std::erase_if(*object, [](const Json::Member& member) { return IsVolatile(member.first); });
    std::sort(object->begin(), object->end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [name, member] : *object) Normalise(member);
  } else if (Json::Array* array = value.AsArray()) {
    for (Json& item : *array) Normalise(item);
  } else if (const std::string* text = value.AsString()) {
    if (text->size() >= 20 && text->size() <= 30 && (*text)[4] == '-' && ParseTime(*text)) value = "TIME";
    else if (text->size() >= 36) value = WithoutUids(*text);
  }
}

}  // namespace

std::map<std::string, std::string> EndState(const World& world, const Workload& workload) {
  std::map<std::string, std::vector<std::string>> found;
  for (const auto& [resource, objects] : world.objects) {
    if (resource.starts_with("events") || resource.starts_with("leases") ||
        resource.starts_with("customresourcedefinitions")) {
      continue;
    }
    for (const auto& [key, object] : objects) {
      Json masked = *object;
      const std::string name = workload.NameOf(resource, masked);
      masked["metadata"]["name"] = name;
      Normalise(masked);
      workload.Mask(resource, masked);
      if (!masked.is_null())
        found[resource + " " + (key.ns.empty() ? "" : key.ns + "/") + name].push_back(ToText(masked));
    }
  }
  std::map<std::string, std::string> end;
  for (auto& [name, texts] : found) {
    std::sort(texts.begin(), texts.end());
    for (const std::string& text : texts) end[name] += text;
  }
  return end;
}

}  // namespace kube::testing

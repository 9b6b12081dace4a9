// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/event_mirror.h"

#include <string_view>
#include <utility>

#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

// In core v1, and in events.k8s.io/v1.
constexpr std::pair<std::string_view, std::string_view> kNames[] = {
    {"involvedObject", "regarding"},
    {"message", "note"},
    {"reportingComponent", "reportingController"},
    {"source", "deprecatedSource"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"count", "deprecatedCount"},
};

Table& OtherTable(Storage& storage, const ResourceInfo& info) {
  return *storage.Find(info.group.empty() ? "events.events.k8s.io" : "events");
}

}  // namespace

void MirrorEvent(Storage& storage, const ResourceInfo& info, const Json& event) {
  const bool to_core = !info.group.empty();
  Json other = Json::MakeObject();
  for (const auto& [name, value] : *event.AsObject()) {
    std::string_view renamed = name;
    for (const auto& [core, events] : kNames) {
      if (name == (to_core ? events : core)) renamed = to_core ? core : events;
    }
    other[renamed] = value;
  }
  Table& table = OtherTable(storage, info);
  other["apiVersion"] = table.info->ApiVersion();
  storage.Put(table, std::move(other));
}

void EraseMirroredEvent(Storage& storage, const ResourceInfo& info, const ObjectKey& key) {
  Table& table = OtherTable(storage, info);
  if (const RevisionPtr there = storage.Get(table, key)) storage.Erase(table, there->object());
}

}  // namespace kube::testing

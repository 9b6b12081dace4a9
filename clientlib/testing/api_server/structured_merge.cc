// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/structured_merge.h"

#include <algorithm>

namespace kube::testing {
namespace {

bool IsEmptyObject(const Json& value) { return value.AsObject() && value.AsObject()->empty(); }

Json MergeMembers(const FieldType& type, Json live, const Json& config) {
  for (const auto& [name, value] : *config.AsObject()) {
    Json& to = live[name];
    to = to.is_null() ? value : Merge(type.Field(name), std::move(to), value);
  }
  return live;
}

// The index of the first item like `item`, or the size.
std::size_t IndexOf(const FieldType& list, const Json::Array& items, const Json& item) {
  const auto at = std::find_if(items.begin(), items.end(),
                               [&](const Json& other) { return list.IsSameItem(item, other); });
  return static_cast<std::size_t>(at - items.begin());
}

// Walks both lists at once: items of `config` come in its order, merged with the live ones; the other live
// items keep their places between those they share.
Json MergeItems(const FieldType& list, Json::Array live, const Json::Array& config) {
  std::vector<std::size_t> to_config, to_live,
      shared;  // By index; the other list's size if it has no such item.
  for (const Json& item : live) to_config.push_back(IndexOf(list, config, item));
  for (std::size_t i = 0; i < config.size(); ++i) {
    to_live.push_back(IndexOf(list, live, config[i]));
    if (to_live[i] < live.size()) shared.push_back(i);
  }
  const FieldType item_type = list.Item();
  Json::Array merged;
  std::vector<bool> is_merged(config.size());
  std::size_t next_shared = 0;
  const auto take_config = [&](std::size_t index) {
    is_merged[index] = true;
    const bool is_shared = to_live[index] < live.size();
    merged.push_back(is_shared ? Merge(item_type, std::move(live[to_live[index]]), config[index])
                               : config[index]);
    if (is_shared && next_shared < shared.size() && shared[next_shared] == index) ++next_shared;
  };
  std::size_t from_live = 0, from_config = 0;
  while (from_live < live.size() || from_config < config.size()) {
    if (from_live < live.size()) {
      const std::size_t twin = to_config[from_live];
      if (twin == config.size()) {
        merged.push_back(std::move(live[from_live++]));
        continue;
      }
      if (twin == from_config) {
        take_config(from_config++);
        ++from_live;
        continue;
      }
      const bool is_next = next_shared < shared.size() && shared[next_shared] == twin;
      if (is_merged[twin] || (from_config < config.size() && !is_next)) {
        ++from_live;
        continue;
      }
    }
    take_config(from_config++);
  }
  return merged;
}

void AddItems(const FieldType& list, const Json::Array& items, FieldSet& set) {
  for (const Json& item : items) {
    FieldSet below = FieldsOf(list.Item(), item);
    AddSelf(below);
    AddBelow(set, list.ElementOf(item), std::move(below));
  }
}

}  // namespace

FieldSet FieldsOf(const FieldType& type, const Json& value) {
  FieldSet set;
  if (const Json::Object* const members = value.AsObject(); members && !type.is_atomic_map()) {
    for (const auto& [name, member] : *members) {
      FieldSet below = FieldsOf(type.Field(name), member);
      if (member.is_null() || IsEmptyObject(member) || !type.IsNamed(name)) AddSelf(below);
      AddBelow(set, "f:" + name, std::move(below));
    }
  } else if (const Json::Array* const items = value.AsArray(); items && type.IsMergeable(*items)) {
    AddItems(type, *items, set);
  } else {
    AddSelf(set);
  }
  return set;
}

Json Merge(const FieldType& type, Json live, const Json& config) {
  if (live.is_object() && config.is_object() && !type.is_atomic_map())
    return MergeMembers(type, std::move(live), config);
  // A null does not empty what merges.
  if (live.is_object() && config.is_null() && !IsEmptyObject(live) && !type.is_atomic_map()) return live;
  if (live.AsArray() && type.IsMergeable(*live.AsArray())) {
    if (config.is_null() && !live.AsArray()->empty()) return live;
    if (config.AsArray() && type.IsMergeable(*config.AsArray()))
      return MergeItems(type, std::move(*live.AsArray()), *config.AsArray());
  }
  return config;
}

void RemoveFields(const FieldType& type, Json& value, const FieldSet& set) {
  if (set.is_null()) return;
  if (Json::Object* const members = value.AsObject(); members && !type.is_atomic_map()) {
    std::erase_if(*members, [&](Json::Member& member) {
      const FieldSet* const below = Below(set, "f:" + member.first);
      if (!below) return false;
      if (HasSelf(*below)) return true;
      RemoveFields(type.Field(member.first), member.second, *below);
      return member.second.is_null();
    });
    if (members->empty()) value = Json();
  } else if (Json::Array* const items = value.AsArray(); items && type.IsMergeable(*items)) {
    std::erase_if(*items, [&](Json& item) {
      const FieldSet* const below = Below(set, type.ElementOf(item));
      if (!below) return false;
      if (HasSelf(*below)) return true;
      RemoveFields(type.Item(), item, *below);
      return item.is_null();
    });
    if (items->empty()) value = Json();
  }
}

void AddNamedFields(const FieldType& type, FieldSet& set) {
  if (!set.AsObject()) return;
  for (auto& [element, below] : *set.AsObject()) {
    const std::string_view name = std::string_view(element).substr(element == "." ? 1 : 2);
    if (element.starts_with("f:")) {
      AddNamedFields(type.Field(name), below);
      if (type.IsNamed(name)) AddSelf(below);
    } else if (element != ".") {
      AddNamedFields(type.Item(), below);
    }
  }
}

}  // namespace kube::testing

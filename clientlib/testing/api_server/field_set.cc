// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/field_set.h"

#include <algorithm>

#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

constexpr std::string_view kSelf = ".";

template <typename Object>
auto LowerBound(Object& members, std::string_view element) {
  return std::lower_bound(
      members.begin(), members.end(), element,
      [](const Json::Member& member, std::string_view wanted) { return member.first < wanted; });
}

// Brings the members left by a subtraction into the form that the invariants ask for.
void Normalize(FieldSet& set, bool has_self) {
  Json::Object& members = *set.AsObject();
  const bool is_leaf = members.empty() || (members.size() == 1 && members.front().first == kSelf);
  if (is_leaf) {
    if (has_self) {
      members.clear();
    } else {
      set = FieldSet();
    }
  } else if (!has_self && members.front().first == kSelf) {
    members.erase(members.begin());
  } else if (has_self) {
    AddSelf(set);
  }
}

std::string PathElementText(std::string_view element) {
  const std::string_view value = element.substr(2);
  if (element.starts_with("f:")) return Concat({".", value});
  if (element.starts_with("v:")) return Concat({"[=", value, "]"});
  std::string text;
  const Result<Json> keys = ParseJson(value);
  if (!keys || !keys->AsObject()) return Concat({"[", value, "]"});
  for (const auto& [name, key] : *keys->AsObject())
    text += (text.empty() ? "" : ",") + name + "=" + ToText(key);
  return Concat({"[", text, "]"});
}

// In the server's order: all members of a level before what is below them.
void AppendPaths(const FieldSet& set, const std::string& path, std::vector<std::string>& paths) {
  if (!set.AsObject()) return;
  for (const auto& [element, below] : *set.AsObject()) {
    if (element != kSelf && HasSelf(below)) paths.push_back(path + PathElementText(element));
  }
  for (const auto& [element, below] : *set.AsObject()) {
    if (element != kSelf) AppendPaths(below, path + PathElementText(element), paths);
  }
}

}  // namespace

bool HasSelf(const FieldSet& set) {
  const Json::Object* const members = set.AsObject();
  return members && (members->empty() || members->front().first == kSelf);
}

void AddSelf(FieldSet& set) {
  if (set.is_null()) set = Json::MakeObject();
  Json::Object& members = *set.AsObject();
  if (!members.empty() && members.front().first != kSelf)
    members.emplace(members.begin(), std::string(kSelf), Json::MakeObject());
}

void AddBelow(FieldSet& set, std::string element, FieldSet below) {
  if (below.is_null()) return;
  const bool has_self = HasSelf(set);
  if (set.is_null()) set = Json::MakeObject();
  Json::Object& members = *set.AsObject();
  const auto at = LowerBound(members, element);
  if (at != members.end() && at->first == element) {
    Unite(at->second, below);
  } else {
    members.emplace(at, std::move(element), std::move(below));
  }
  if (has_self) AddSelf(set);
}

const FieldSet* Below(const FieldSet& set, std::string_view element) {
  const Json::Object* const members = set.AsObject();
  if (!members) return nullptr;
  const auto at = LowerBound(*members, element);
  return at != members->end() && at->first == element ? &at->second : nullptr;
}

void Unite(FieldSet& set, const FieldSet& other) {
  if (set.is_null()) {
    set = other;
    return;
  }
  if (other.is_null()) return;
  if (HasSelf(other)) AddSelf(set);
  for (const auto& [element, below] : *other.AsObject()) {
    if (element != kSelf) AddBelow(set, element, below);
  }
}

void Subtract(FieldSet& set, const FieldSet& other) {
  if (set.is_null() || other.is_null()) return;
  const bool keeps_self = HasSelf(set) && !HasSelf(other);
  std::erase_if(*set.AsObject(), [&](Json::Member& member) {
    if (member.first == kSelf) return false;
    if (const FieldSet* const below = Below(other, member.first)) Subtract(member.second, *below);
    return member.second.is_null();
  });
  Normalize(set, keeps_self);
}

FieldSet Intersect(const FieldSet& a, const FieldSet& b) {
  FieldSet both;
  if (a.is_null() || b.is_null()) return both;
  if (HasSelf(a) && HasSelf(b)) AddSelf(both);
  for (const auto& [element, below] : *a.AsObject()) {
    const FieldSet* const other = element == kSelf ? nullptr : Below(b, element);
    if (other) AddBelow(both, element, Intersect(below, *other));
  }
  return both;
}

std::vector<std::string> PathsOf(const FieldSet& set) {
  std::vector<std::string> paths;
  AppendPaths(set, "", paths);
  return paths;
}

}  // namespace kube::testing

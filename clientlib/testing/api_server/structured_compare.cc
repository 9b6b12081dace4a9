// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "clientlib/testing/api_server/structured_merge.h"

namespace kube::testing {
namespace {

void CompareValues(const FieldType& type, const Json* before, const Json* after, Comparison& to);

// The member `name`, looked for at `hint` first: two versions of an object mostly have equal order.
const Json* FindNear(const Json* object, std::string_view name, std::size_t hint) {
  const Json::Object* const members = object ? object->AsObject() : nullptr;
  if (!members) return nullptr;
  if (hint < members->size() && (*members)[hint].first == name) return &(*members)[hint].second;
  return object->Find(name);
}

// The text of the element is made only if there is something to add.
template <typename MakeElement>
void AddChild(Comparison& to, Comparison&& child, MakeElement make_element) {
  if (child.changed.is_null() && child.removed.is_null()) return;
  std::string element = make_element();
  AddBelow(to.removed, element, std::move(child.removed));
  AddBelow(to.changed, std::move(element), std::move(child.changed));
}

void CompareLeaf(const Json* before, const Json* after, Comparison& to) {
  if (!after) {
    AddSelf(to.removed);
  } else if (!before || !(*before == *after)) {
    AddSelf(to.changed);
  }
}

void CompareMembers(const FieldType& type, const Json* before, const Json* after, Comparison& to) {
  const auto compare = [&](const std::string& name, const Json* old_value, const Json* new_value) {
    Comparison child;
    CompareValues(type.Field(name), old_value, new_value, child);
    AddChild(to, std::move(child), [&] { return "f:" + name; });
  };
  std::size_t position = 0, shared = 0;
  if (after && after->AsObject()) {
    for (const auto& [name, value] : *after->AsObject()) {
      const Json* const old_value = FindNear(before, name, position++);
      shared += old_value ? 1 : 0;
      compare(name, old_value, &value);
    }
  }
  if (!before || !before->AsObject() || shared == before->AsObject()->size()) return;
  position = 0;
  for (const auto& [name, value] : *before->AsObject()) {
    if (!FindNear(after, name, position++)) compare(name, &value, nullptr);
  }
}

bool IsSameOrder(const FieldType& list, const Json::Array& before, const Json::Array& after) {
  return std::equal(before.begin(), before.end(), after.begin(), after.end(),
                    [&](const Json& a, const Json& b) { return list.IsSameItem(a, b); });
}

void CompareItems(const FieldType& list, const Json::Array& before, const Json::Array& after,
                  Comparison& to) {
  const FieldType item_type = list.Item();
  if (IsSameOrder(list, before, after)) {
    for (std::size_t i = 0; i < after.size(); ++i) {
      Comparison child;
      CompareValues(item_type, &before[i], &after[i], child);
      AddChild(to, std::move(child), [&] { return list.ElementOf(after[i]); });
    }
    return;
  }
  struct Versions {
    std::vector<const Json*> before, after;
  };
  std::map<std::string, Versions> items;
  for (const Json& item : before) items[list.ElementOf(item)].before.push_back(&item);
  for (const Json& item : after) items[list.ElementOf(item)].after.push_back(&item);
  const auto is_equal = [](const Json* a, const Json* b) { return *a == *b; };
  for (const auto& [element, versions] : items) {
    const auto& [olds, news] = versions;
    Comparison child;
    // Items with one key in common are one field together, without fields below it.
    if (olds.size() <= 1 && news.size() <= 1) {
      CompareValues(item_type, olds.empty() ? nullptr : olds[0], news.empty() ? nullptr : news[0], child);
    } else if (olds.size() >= 2 && news.size() >= 2) {
      if (!std::equal(olds.begin(), olds.end(), news.begin(), news.end(), is_equal)) AddSelf(child.changed);
    } else if (olds.size() >= 2) {
      if (!news.empty()) CompareValues(item_type, nullptr, news[0], child);
      AddSelf(child.removed);
    } else {
      if (!olds.empty()) CompareValues(item_type, olds[0], nullptr, child);
      AddSelf(child.changed);
    }
    AddChild(to, std::move(child), [&key = element] { return key; });
  }
}

bool IsEmpty(const Json* value) {
  if (!value) return true;
  if (value->AsObject()) return value->AsObject()->empty();
  if (value->AsArray()) return value->AsArray()->empty();
  return value->is_null();
}

bool IsKind(const Json* value, bool is_object) {
  return !value || value->is_null() || (is_object ? value->is_object() : value->is_array());
}

// True if it compared the values as map or list; else they are a leaf.
bool CompareInside(const FieldType& type, const Json* before, const Json* after, Comparison& to) {
  if (IsEmpty(before) && IsEmpty(after)) return false;  // Keeps apart null, {} and none.
  const auto is_any = [&](auto is_kind) {
    return (before && is_kind(*before)) || (after && is_kind(*after));
  };
  if (is_any([](const Json& value) { return value.is_object(); })) {
    if (type.is_atomic_map() || !IsKind(before, true) || !IsKind(after, true)) return false;
    CompareMembers(type, before, after, to);
    return true;
  }
  if (!is_any([](const Json& value) { return value.is_array(); })) return false;
  if (!IsKind(before, false) || !IsKind(after, false)) return false;
  static const Json::Array kNone;
  const Json::Array& olds = before && before->AsArray() ? *before->AsArray() : kNone;
  const Json::Array& news = after && after->AsArray() ? *after->AsArray() : kNone;
  if (!type.IsMergeable(olds) || !type.IsMergeable(news)) return false;
  CompareItems(type, olds, news, to);
  return true;
}

void CompareValues(const FieldType& type, const Json* before, const Json* after, Comparison& to) {
  if (!CompareInside(type, before, after, to)) {
    CompareLeaf(before, after, to);
  } else if (!before) {
    AddSelf(to.changed);
  } else if (!after) {
    AddSelf(to.removed);
  }
}

}  // namespace

Comparison Compare(const FieldType& type, const Json* before, const Json* after) {
  Comparison comparison;
  CompareValues(type, before, after, comparison);
  return comparison;
}

}  // namespace kube::testing

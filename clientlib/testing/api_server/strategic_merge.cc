// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "clientlib/testing/api_server/field_type.h"
#include "clientlib/testing/api_server/patches.h"

namespace kube::testing {
namespace {

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kSetOrder = "$setElementOrder/";
constexpr std::string_view kDeleteValues = "$deleteFromPrimitiveList/";

Error BadPatch(const std::string& why) { return Error(ErrorCode::kInvalidArgument, why); }

// The server answers 500 to these.
Error NoMergeKey(const Json& item, const std::string& key) {
  return Error(ErrorCode::kInternal, "map: " + ToText(item) + " does not contain declared merge key: " + key);
}
Error UnknownDirective(const Json& patch, const std::string& directive) {
  return Error(ErrorCode::kInternal, "unknown patch type: " + directive + " in map: " + ToText(patch));
}

std::string DirectiveOf(const Json& patch) {
  const Json* const directive = patch.Find(kDirective);
  if (!directive) return {};
  return directive->AsString() ? *directive->AsString() : ToText(*directive);
}

bool HasDirective(const Json& item) { return item.Find(kDirective) != nullptr; }

Json WithoutDirective(Json patch) {
  patch.Erase(kDirective);
  return patch;
}

Status MergeValue(const FieldType& type, Json& original, const Json& patch);
Status MergeMap(const FieldType& type, Json& original, const Json& patch);

// A list that merges: objects by `key_`, or plain values if `key_` is empty.
class MergingList {
 public:
  explicit MergingList(const FieldType& type) : type_(type) {
    if (type.list_type() == FieldType::ListType::kMap) key_ = type.schema()->list_map_keys().front();
  }

  Status Merge(Json::Array& items, const Json::Array& patch) const;
  // Sorts items in `order` by it; the others keep their places among those as in `server`.
  void Sort(Json::Array& items, const Json::Array& order, const Json::Array& server) const;

 private:
  Status MergeObjects(Json::Array& items, const Json::Array& patch) const;
  Status TakeDirectives(Json::Array& items, Json::Array& patch) const;
  const Json* KeyIn(const Json& item) const { return key_.empty() ? &item : item.Find(key_); }
  std::size_t IndexIn(const Json::Array& items, const Json& item) const;

  FieldType type_;
  std::string key_;
};

std::size_t MergingList::IndexIn(const Json::Array& items, const Json& item) const {
  const Json* const wanted = KeyIn(item);
  const auto at = std::find_if(items.begin(), items.end(), [&](const Json& other) {
    const Json* const key = KeyIn(other);
    return key && wanted && *key == *wanted;
  });
  return static_cast<std::size_t>(at - items.begin());
}

Status MergingList::Merge(Json::Array& items, const Json::Array& patch) const {
  const Json::Array server = items;
  Json::Array rest = patch;
  if (!key_.empty()) {
    if (Status taken = TakeDirectives(items, rest); !taken) return taken;
    if (Status merged = MergeObjects(items, rest); !merged) return merged;
  } else {
    for (const Json& value : rest) {
      if (std::find(items.begin(), items.end(), value) == items.end()) items.push_back(value);
    }
  }
  Sort(items, rest, server);
  return {};
}

Status MergingList::TakeDirectives(Json::Array& items, Json::Array& patch) const {
  for (const Json& item : patch) {
    if (!item.is_object()) return BadPatch("an item of a list that merges by \"" + key_ + "\" must be an object");
    const std::string directive = DirectiveOf(item);
    if (directive == "replace") {
      std::erase_if(patch, HasDirective);
      items.clear();
      return {};
    }
    if (directive == "delete") {
      if (!KeyIn(item)) return NoMergeKey(item, key_);
      std::erase_if(items, [&](const Json& other) {
        const Json* const key = KeyIn(other);
        return key && *key == *KeyIn(item);
      });
    } else if (HasDirective(item) && directive != "merge") {
      return UnknownDirective(item, directive);
    }
  }
  std::erase_if(patch, [](const Json& item) { return DirectiveOf(item) == "delete"; });
  return {};
}

Status MergingList::MergeObjects(Json::Array& items, const Json::Array& patch) const {
  for (const Json& item : patch) {
    if (!KeyIn(item)) return NoMergeKey(item, key_);
    const std::size_t index = IndexIn(items, item);
    if (index == items.size()) items.push_back(Json::MakeObject());
    if (Status merged = MergeMap(type_.Item(), items[index], WithoutDirective(item)); !merged) return merged;
  }
  return {};
}

void MergingList::Sort(Json::Array& items, const Json::Array& order, const Json::Array& server) const {
  struct Placed {
    std::size_t order, server;
    Json item;
  };
  std::vector<Placed> patched, others;
  for (Json& item : items) {
    const std::size_t in_order = IndexIn(order, item), in_server = IndexIn(server, item);
    (in_order < order.size() ? patched : others).push_back({in_order, in_server, std::move(item)});
  }
  std::stable_sort(patched.begin(), patched.end(), [](const auto& a, const auto& b) { return a.order < b.order; });
  std::stable_sort(others.begin(), others.end(), [](const auto& a, const auto& b) { return a.server < b.server; });
  items.clear();
  std::size_t next_patched = 0, next_other = 0;
  while (next_patched < patched.size() || next_other < others.size()) {
    const bool has_both = next_patched < patched.size() && next_other < others.size();
    const bool takes_other = has_both ? others[next_other].server < patched[next_patched].server &&
                                            patched[next_patched].server < server.size()
                                      : next_other < others.size();
    items.push_back(std::move(takes_other ? others[next_other++].item : patched[next_patched++].item));
  }
}

bool IsMerging(const FieldType& type) { return type.list_type() != FieldType::ListType::kAtomic; }

Status RetainKeys(Json& original, const Json& patch, const Json& keys) {
  if (!keys.AsArray()) return BadPatch("$retainKeys must be a list");
  const auto is_retained = [&](std::string_view name) {
    return std::find(keys.AsArray()->begin(), keys.AsArray()->end(), Json(name)) != keys.AsArray()->end();
  };
  for (const auto& [name, value] : *patch.AsObject()) {
    if (!name.view().starts_with('$') && !is_retained(name)) return BadPatch("invalid patch format of retainKeys");
  }
  std::erase_if(*original.AsObject(), [&](const Json::Member& member) { return !is_retained(member.first); });
  return {};
}

void DeleteValues(Json& original, std::string_view name, const Json& values) {
  Json* const list = original.Find(name);
  if (!list || !list->AsArray() || !values.AsArray()) return;
  std::erase_if(*list->AsArray(), [&](const Json& value) {
    return std::find(values.AsArray()->begin(), values.AsArray()->end(), value) != values.AsArray()->end();
  });
}

// Puts the lists of `original`, into which `patch` is already merged, into the orders that `patch` asks for.
Status SetOrders(const FieldType& type, Json& original, const Json& patch, const Json& server) {
  for (const auto& [name, order] : *patch.AsObject()) {
    if (!name.view().starts_with(kSetOrder)) continue;
    if (!order.AsArray()) return BadPatch(name + " must be a list");
    const std::string_view field = name.view().substr(kSetOrder.size());
    const FieldType list = type.Field(field);
    Json* const items = original.Find(field);
    if (!IsMerging(list) || !items || !items->AsArray()) continue;
    const Json* const before = server.Find(field);
    const Json::Array none;
    MergingList(list).Sort(*items->AsArray(), *order.AsArray(),
                           before && before->AsArray() ? *before->AsArray() : none);
  }
  return {};
}

bool HasOrders(const Json& patch) {
  return std::any_of(patch.AsObject()->begin(), patch.AsObject()->end(),
                     [](const Json::Member& member) { return member.first.view().starts_with(kSetOrder); });
}

// REQUIRES: both are objects.
Status MergeMap(const FieldType& type, Json& original, const Json& patch) {
  if (HasDirective(patch)) {
    const std::string directive = DirectiveOf(patch);
    if (directive != "replace" && directive != "delete") return UnknownDirective(patch, directive);
    original = directive == "replace" ? WithoutDirective(patch) : Json::MakeObject();
    return {};
  }
  const bool has_orders = HasOrders(patch);
  const Json server = has_orders ? original : Json();
  if (const Json* const keys = patch.Find(kRetainKeys)) {
    if (Status retained = RetainKeys(original, patch, *keys); !retained) return retained;
  }
  for (const auto& [name, value] : *patch.AsObject()) {
    if (name.view().starts_with(kDeleteValues)) DeleteValues(original, name.view().substr(kDeleteValues.size()), value);
  }
  for (const auto& [name, value] : *patch.AsObject()) {
    if (name == kRetainKeys || name.view().starts_with(kSetOrder) || name.view().starts_with(kDeleteValues)) continue;
    if (value.is_null()) {
      original.Erase(name);
    } else if (Status merged = MergeValue(type.Field(name), original[name], value); !merged) {
      return merged;
    }
  }
  return has_orders ? SetOrders(type, original, patch, server) : Status();
}

Status MergeValue(const FieldType& type, Json& original, const Json& patch) {
  if (patch.is_object()) {
    if (!original.is_object()) original = Json::MakeObject();
    return MergeMap(type, original, patch);
  }
  if (patch.AsArray() && IsMerging(type)) {
    if (!original.AsArray()) original = Json::MakeArray();
    return MergingList(type).Merge(*original.AsArray(), *patch.AsArray());
  }
  original = patch;
  return {};
}

}  // namespace

Status ApplyStrategicMergePatch(const StructuralSchema* schema, Json& document, const Json& patch) {
  if (!patch.is_object()) return BadPatch("a strategic merge patch must be an object");
  if (!document.is_object()) document = Json::MakeObject();
  return MergeMap(FieldType::Root(schema), document, patch);
}

}  // namespace kube::testing

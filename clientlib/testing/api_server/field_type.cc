// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/field_type.h"

#include <algorithm>
#include <cassert>

namespace kube::testing {
namespace {

constexpr std::string_view kObjectMeta = R"({"type": "object", "properties": {
  "name": {"type": "string"}, "generateName": {"type": "string"}, "namespace": {"type": "string"},
  "selfLink": {"type": "string"}, "uid": {"type": "string"}, "resourceVersion": {"type": "string"},
  "generation": {"type": "integer"}, "deletionGracePeriodSeconds": {"type": "integer"},
  "creationTimestamp": {"type": "string"}, "deletionTimestamp": {"type": "string"},
  "labels": {"type": "object", "additionalProperties": {"type": "string"}},
  "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
  "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
  "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
    "items": {"type": "object", "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": true}},
  "managedFields": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}})";

const StructuralSchema* ObjectMetaSchema() {
  static const std::shared_ptr<const StructuralSchema> kSchema = [] {
    const Result<Json> json = ParseJson(kObjectMeta);
    assert(json && "the text above is JSON");
    Result<std::shared_ptr<const StructuralSchema>> schema = StructuralSchema::Parse(*json);
    assert(schema && "the text above is a structural schema");
    return *std::move(schema);
  }();
  return kSchema.get();
}

}  // namespace

FieldType FieldType::Field(std::string_view name) const {
  if (is_root_ && name == "metadata") return FieldType(ObjectMetaSchema(), false);
  return FieldType(schema_ ? schema_->Property(name) : nullptr, false);
}

bool FieldType::IsNamed(std::string_view name) const {
  if (is_root_ && (name == "apiVersion" || name == "kind" || name == "metadata")) return true;
  return schema_ && schema_->HasProperty(name);
}

const Json* FieldType::KeyOf(const Json& item, std::string_view key) const {
  if (const Json* const value = item.Find(key)) return value;
  const StructuralSchema* const items = schema_->Items();
  const StructuralSchema* const field = items ? items->Property(key) : nullptr;
  return field ? field->default_value() : nullptr;
}

std::string FieldType::ElementOf(const Json& item) const {
  if (list_type() == ListType::kSet) return "v:" + ToText(item);
  Json::Object keys;
  for (const std::string& key : schema_->list_map_keys()) {
    if (const Json* const value = KeyOf(item, key)) keys.emplace_back(key, *value);
  }
  if (keys.empty()) return {};
  std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return "k:" + ToText(Json(std::move(keys)));
}

bool FieldType::IsSameItem(const Json& a, const Json& b) const {
  if (list_type() == ListType::kSet) return a == b;
  const std::vector<std::string>& keys = schema_->list_map_keys();
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    const Json* const left = KeyOf(a, key);
    const Json* const right = KeyOf(b, key);
    return left && right ? *left == *right : left == right;
  });
}

bool FieldType::IsMergeable(const Json::Array& items) const {
  if (list_type() == ListType::kAtomic) return false;
  if (list_type() == ListType::kSet) return true;
  const std::vector<std::string>& keys = schema_->list_map_keys();
  return std::all_of(items.begin(), items.end(), [&](const Json& item) {
    return std::any_of(keys.begin(), keys.end(),
                       [&](const std::string& key) { return KeyOf(item, key) != nullptr; });
  });
}

Json KeysOf(const StructuralSchema& list, const Json& item) {
  Json keys = Json::MakeObject();
  for (const std::string& key : list.list_map_keys()) {
    if (const Json* const value = item.Find(key)) keys[key] = *value;
  }
  return keys;
}

}  // namespace kube::testing

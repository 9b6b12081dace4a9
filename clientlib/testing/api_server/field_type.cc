// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/field_type.h"

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
    "items": {"type": "object", "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": true}}}})";

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

Json KeysOf(const StructuralSchema& list, const Json& item) {
  Json keys = Json::MakeObject();
  for (const std::string& key : list.list_map_keys()) {
    if (const Json* const value = item.Find(key)) keys[key] = *value;
  }
  return keys;
}

}  // namespace kube::testing

// SPDX-License-Identifier: Apache-2.0
// Pruning and defaulting: what the server does to an object before validation.
#include "clientlib/testing/api_server/schema_node.h"

namespace kube::testing::internal {
namespace {

bool IsResourceField(std::string_view name) { return name == "apiVersion" || name == "kind" || name == "metadata"; }

void PruneValue(const SchemaNode& schema, Json& value, bool is_resource) {
  if (Json::Array* const items = value.AsArray()) {
    if (!schema.items) return;
    for (Json& item : *items) PruneValue(*schema.items, item, schema.items->is_embedded_resource);
    return;
  }
  Json::Object* const members = value.AsObject();
  if (!members) return;
  std::erase_if(*members, [&](Json::Member& member) {
    if (is_resource && IsResourceField(member.first)) return false;
    if (const SchemaNode* const field = schema.At(member.first)) {
      PruneValue(*field, member.second, field->is_embedded_resource);
      return false;
    }
    return !schema.preserves_unknown && !schema.allows_additional;
  });
}

bool IsForbiddenNull(const SchemaNode& schema, const Json& value) { return value.is_null() && !schema.is_nullable; }

}  // namespace

void SchemaNode::Prune(Json& object) const { PruneValue(*this, object, true); }

void SchemaNode::SetDefaults(Json& object) const {
  if (Json::Array* const values = object.AsArray()) {
    if (!items) return;
    for (Json& item : *values) {
      if (items->default_json && IsForbiddenNull(*items, item)) item = *items->default_json;
      items->SetDefaults(item);
    }
    return;
  }
  Json::Object* const members = object.AsObject();
  if (!members) return;
  for (const auto& [name, schema] : properties) {
    if (schema->default_json && !object.Find(name)) members->emplace_back(name, *schema->default_json);
  }
  std::erase_if(*members, [this](Json::Member& member) {
    const SchemaNode* const schema = At(member.first);
    if (!schema) return false;
    if (IsForbiddenNull(*schema, member.second)) {
      if (!schema->default_json) return true;
      member.second = *schema->default_json;
    }
    schema->SetDefaults(member.second);
    return false;
  });
}

}  // namespace kube::testing::internal

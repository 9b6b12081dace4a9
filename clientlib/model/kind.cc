// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/kind.h"

#include "clientlib/model/json_reader.h"
#include "clientlib/model/json_tokens.h"
#include "clientlib/model/json_writer.h"

namespace kube {
namespace {

using Type = JsonToken::Type;

struct Head {
  std::string kind;
};

struct ListMeta {
  std::string resource_version, continue_token;
  std::int64_t remaining_item_count = 0;
  static std::span<const FieldInfo> Fields() {
    using T = ListMeta;
    static constexpr FieldInfo kFields[] = {
        Field<&T::resource_version>("resourceVersion"),
        Field<&T::continue_token>("continue"),
        Field<&T::remaining_item_count>("remainingItemCount"),
    };
    return kFields;
  }
};

struct ListHead {
  ListMeta metadata;
};

constexpr JsonLimits kObjectLimits{.max_depth = kApiDepth};

constexpr FieldInfo kHeadFields[] = {Field<&Head::kind>("kind")};
constexpr FieldInfo kObjectFields[] = {Field<&Object::metadata>("metadata")};
constexpr FieldInfo kListFields[] = {Field<&ListHead::metadata>("metadata")};

Result<std::shared_ptr<Object>> ObjectFromToken(const Kind& kind, const JsonToken& token) {
  Head head;
  if (Status read = ReadStruct(kHeadFields, token, &head); !read) return std::move(read).error();
  // The items of a list have no kind.
  if (!head.kind.empty() && head.kind != kind.kind && head.kind != "PartialObjectMetadata") {
    return Error(ErrorCode::kDecode, "kind: expected " + std::string(kind.kind) + ", found " + head.kind.substr(0, 64));
  }
  std::shared_ptr<Object> object = kind.make();
  if (Status read = ReadStruct(kObjectFields, token, object.get()); !read) return std::move(read).error();
  if (Status read = ReadStruct(kind.fields, token, kind.body(*object)); !read) return std::move(read).error();
  return object;
}

// The items of a list object; null if there are none. Errors: kDecode. REQUIRES: `object` is a JSON object.
Result<const JsonToken*> FindItems(const JsonToken& object) {
  const JsonToken* items = nullptr;
  for (const JsonToken* key = object.first(); key != object.next(); key = (key + 1)->next()) {
    if (key->string() != "items") continue;
    if (items) return Error(ErrorCode::kDecode, "items: given twice");
    items = key + 1;
  }
  return items;
}

}  // namespace

std::string Kind::ApiVersion() const {
  return group.empty() ? std::string(version) : std::string(group).append("/").append(version);
}

Result<std::shared_ptr<Object>> DecodeObject(const Kind& kind, std::string_view text) {
  const Result<const JsonToken*> root = ThreadJsonTokens().Parse(text, kObjectLimits, JsonTokens::Filter::kManagement);
  if (!root) return root.error();
  return ObjectFromToken(kind, **root);
}

Result<DecodedList> DecodeObjectList(const Kind& kind, std::string_view text, const JsonLimits& limits) {
  JsonLimits deep = limits;
  deep.max_depth = kApiDepth + 2;
  const Result<const JsonToken*> root = ThreadJsonTokens().Parse(text, deep, JsonTokens::Filter::kManagement);
  if (!root) return root.error();
  ListHead head;
  if (Status read = ReadStruct(kListFields, **root, &head); !read) return std::move(read).error();
  DecodedList list{.items = {},
                   .resource_version = std::move(head.metadata.resource_version),
                   .continue_token = std::move(head.metadata.continue_token),
                   .remaining_item_count = head.metadata.remaining_item_count};

  const Result<const JsonToken*> found = FindItems(**root);
  if (!found) return found.error();
  const JsonToken* const items = *found;
  // An object or a Status in place of a list must not look like an empty cluster.
  if (!items) return Error(ErrorCode::kDecode, "a list without items");
  if (items->is_null()) return list;
  if (items->type != Type::kArray) return Error(ErrorCode::kDecode, "items: expected a list");
  list.items.reserve(items->count);
  for (const JsonToken* item = items->first(); item != items->next(); item = item->next()) {
    Result<std::shared_ptr<Object>> object = ObjectFromToken(kind, *item);
    if (!object) {
      const std::string at = "items[" + std::to_string(list.items.size()) + "].";
      return Error(ErrorCode::kDecode, at + object.error().message());
    }
    list.items.push_back(*std::move(object));
  }
  return list;
}

std::string EncodeObject(const Kind& kind, const Object& object) {
  JsonWriter writer;
  writer.StartObject();
  writer.Key("apiVersion");
  writer.String(kind.ApiVersion());
  writer.Key("kind");
  writer.String(kind.kind);
  writer.Members(kObjectFields, &object);
  writer.Members(kind.fields, kind.body(const_cast<Object&>(object)));
  writer.EndObject();
  return writer.Take();
}

}  // namespace kube

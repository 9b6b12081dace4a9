// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/json.h"

#include <algorithm>
#include <cassert>

#include "clientlib/model/json_reader.h"
#include "clientlib/model/json_tokens.h"
#include "clientlib/model/json_writer.h"

namespace kube {
namespace {

constexpr int kMaxDepth = 500;  // Json values nest on the stack; this many are safe with sanitizers too.

// A key that the object has twice; null data() if none.
std::string_view FindDuplicate(const JsonToken& object) {
  std::vector<std::string_view> keys;
  keys.reserve(object.count);
  const JsonToken* const end = object.next();
  for (const JsonToken* key = object.first(); key != end; key = (key + 1)->next()) keys.push_back(key->string());
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  return twice == keys.end() ? std::string_view() : *twice;
}

}  // namespace

Status internal::JsonFromToken(const JsonToken& token, Json& json, int max_depth) {
  using Type = JsonToken::Type;
  if (token.type >= Type::kArray && max_depth == 0) return Error(ErrorCode::kTooLarge, "nested too deep");
  switch (token.type) {
    case Type::kNull: json = Json(); break;
    case Type::kBool: json = Json(token.integer != 0); break;
    case Type::kInt: json = Json(token.integer); break;
    case Type::kDouble: json = Json(token.number); break;
    case Type::kString: json = Json(token.string()); break;
    case Type::kArray: {
      Json::Array items(token.count);
      const JsonToken* item = token.first();
      for (Json& to : items) {
        if (Status read = JsonFromToken(*item, to, max_depth - 1); !read) return read;
        item = item->next();
      }
      json = Json(std::move(items));
      break;
    }
    case Type::kObject: {
      if (const std::string_view key = FindDuplicate(token); key.data() != nullptr) {
        return Error(ErrorCode::kDecode, "key \"" + std::string(key.substr(0, 64)) + "\" given twice");
      }
      Json::Object members(token.count);
      const JsonToken* key = token.first();
      for (auto& [name, value] : members) {
        name = CompactString::Shared(key->string());
        if (Status read = JsonFromToken(*(key + 1), value, max_depth - 1); !read) return read;
        key = (key + 1)->next();
      }
      json = Json(std::move(members));
      break;
    }
  }
  return {};
}

const Json* Json::Find(std::string_view key) const {
  const Object* const object = AsObject();
  if (!object) return nullptr;
  for (const auto& [name, value] : *object) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json* Json::FindFrom(std::size_t& next, std::string_view key) const {
  const Object* const object = AsObject();
  if (!object) return nullptr;
  for (std::size_t tried = 0, at = next; tried < object->size(); ++tried, ++at) {
    if (at >= object->size()) at = 0;
    const auto& [name, value] = (*object)[at];
    if (name != key) continue;
    next = at + 1;
    return &value;
  }
  return nullptr;
}

Json* Json::Find(std::string_view key) { return const_cast<Json*>(std::as_const(*this).Find(key)); }

const Json* Json::At(std::initializer_list<std::string_view> path) const {
  const Json* at = this;
  for (const std::string_view step : path) {
    if (!(at = at->Find(step))) return nullptr;
  }
  return at;
}

Json& Json::operator[](std::string_view key) {
  if (Json* const found = Find(key)) return *found;
  if (is_null()) value_ = Object();
  assert(is_object() && "only an object has members");
  return AsObject()->emplace_back(std::string(key), Json()).second;
}

Json& Json::Append(Json item) {
  if (is_null()) value_ = Array();
  assert(is_array() && "only an array is appended to");
  return AsArray()->emplace_back(std::move(item));
}

bool Json::Erase(std::string_view key) {
  Object* const object = AsObject();
  return object && std::erase_if(*object, [&](const Member& member) { return member.first == key; }) > 0;
}

bool operator==(const Json& a, const Json& b) {
  const Json::Object* const left = a.AsObject();
  const Json::Object* const right = b.AsObject();
  if (!left || !right) return a.value_ == b.value_;
  std::size_t next = 0;
  return left->size() == right->size() && std::all_of(left->begin(), left->end(), [&](const Json::Member& member) {
           const Json* const other = b.FindFrom(next, member.first);
           return other && *other == member.second;
         });
}

Result<Json> ParseJson(std::string_view text, const JsonLimits& limits) {
  JsonLimits bounded = limits;
  bounded.max_depth = std::min(limits.max_depth, kMaxDepth);
  const Result<const JsonToken*> root = ThreadJsonTokens().Parse(text, bounded, JsonTokens::Filter::kNone);
  if (!root) return root.error();
  Json json;
  if (Status read = internal::JsonFromToken(**root, json, kMaxDepth); !read) return std::move(read).error();
  return json;
}

std::string ToText(const Json& value) {
  JsonWriter writer;
  writer.Value(value);
  return writer.Take();
}

Json ToJson(std::span<const FieldInfo> fields, const void* source) {
  JsonWriter writer;
  writer.StartObject();
  writer.Members(fields, source);
  writer.EndObject();
  Result<Json> json = ParseJson(writer.Take(), {.max_bytes = SIZE_MAX, .max_depth = INT32_MAX, .max_values = SIZE_MAX});
  assert(json && "what JsonWriter wrote can be read");
  return *std::move(json);
}

void MergePatch(Json& target, const Json& patch) {
  const Json::Object* const members = patch.AsObject();
  if (!members) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = Json::MakeObject();
  for (const auto& [key, value] : *members) {
    if (value.is_null()) {
      target.Erase(key);
    } else {
      MergePatch(target[key], value);
    }
  }
}

}  // namespace kube

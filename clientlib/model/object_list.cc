// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/object_list.h"

#include <string>
#include <utility>

#include "clientlib/model/json.h"
#include "clientlib/model/json_scan.h"

namespace kube {
namespace {

// The value of the first member `name` of an object; empty if there is none.
std::string_view Member(std::string_view object, std::string_view name) {
  JsonScan scan(object, '{');
  while (scan.Next()) {
    if (scan.name() == name) return scan.value();
  }
  return {};
}

std::string Text(std::string_view value) {
  const Result<Json> json = ParseJson(value);
  const std::string* const text = json ? json->AsString() : nullptr;
  return text == nullptr ? std::string() : *text;
}

}  // namespace

std::shared_ptr<const Object> ReadIdentity(const Kind& kind, std::string_view text) {
  const std::string_view named = Member(text, "kind");
  if (!named.empty() && Text(named) != kind.kind) return nullptr;
  const std::string_view metadata = Member(text, "metadata");
  std::shared_ptr<Object> identity = kind.make();
  identity->metadata.ns = Text(Member(metadata, "namespace"));
  identity->metadata.name = Text(Member(metadata, "name"));
  identity->metadata.uid = Text(Member(metadata, "uid"));
  identity->metadata.resource_version = Text(Member(metadata, "resourceVersion"));
  if (identity->metadata.name.empty()) return nullptr;
  return identity;
}

Result<ObjectsOneByOne> DecodeObjectsOneByOne(const Kind& kind, std::string_view text) {
  if (text.size() > kListLimits.max_bytes) return Error(ErrorCode::kTooLarge, "a list over the limit of its size");
  // The list without its items is read as ever, so that the same is required of it.
  std::string head = "{";
  std::string_view items;
  JsonScan members(text, '{');
  while (members.Next()) {
    if (members.name() == "items" && !items.empty()) return Error(ErrorCode::kDecode, "items: given twice");
    const bool is_items = members.name() == "items" && members.value().starts_with('[');
    if (is_items) items = members.value();
    head.append(head.size() > 1 ? "," : "").append("\"").append(members.name()).append("\":");
    head.append(is_items ? "[]" : members.value());
  }
  if (!members.problem().empty()) return Error(ErrorCode::kDecode, "list: " + std::string(members.problem()));
  Result<DecodedList> list = DecodeObjectList(kind, head.append("}"));
  if (!list) return std::move(list).error();

  ObjectsOneByOne objects{*std::move(list), {}};
  if (items.empty()) return objects;
  JsonScan scan(items, '[');
  for (std::size_t i = 0; scan.Next(); ++i) {
    Result<std::shared_ptr<Object>> object = DecodeObject(kind, scan.value());
    if (object) {
      objects.list.items.push_back(*std::move(object));
      continue;
    }
    std::shared_ptr<const Object> identity = ReadIdentity(kind, scan.value());
    if (!identity) return std::move(object).error().with("items[" + std::to_string(i) + "]");
    objects.unreadable.push_back({std::move(identity), std::move(object).error()});
  }
  if (!scan.problem().empty()) return Error(ErrorCode::kDecode, "items: " + std::string(scan.problem()));
  return objects;
}

}  // namespace kube

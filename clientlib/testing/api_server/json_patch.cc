// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <optional>

#include "clientlib/testing/api_server/patches.h"

namespace kube::testing {
namespace {

// The server gives no more detail about a patch that it can read but not apply.
Error Refused() { return Error(ErrorCode::kInvalid, "the server rejected our request due to an error in our request"); }

Error Unreadable(const Json& json, const std::string& wanted) {
  const std::string_view type = json.is_object()  ? "object"
                                : json.AsArray()  ? "array"
                                : json.AsString() ? "string"
                                : json.AsBool()   ? "bool"
                                                  : "number";
  return Error(ErrorCode::kInvalidArgument, "error decoding patch: json: cannot unmarshal " + std::string(type) +
                                                " into Go value of type " + wanted);
}

std::string Unescape(std::string_view step) {
  std::string text;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool is_escape = step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1');
    text += !is_escape ? step[i] : step[++i] == '0' ? '~' : '/';
  }
  return text;
}

// RFC 6901. False if the text is no pointer.
bool SplitPointer(std::string_view pointer, std::vector<std::string>& steps) {
  if (!pointer.empty() && pointer[0] != '/') return false;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t end = std::min(pointer.find('/'), pointer.size());
    steps.push_back(Unescape(pointer.substr(0, end)));
    pointer.remove_prefix(end);
  }
  return true;
}

// Negative indices count from the end, as in the server's library.
std::optional<std::size_t> IndexIn(std::string_view step, std::size_t size) {
  std::int64_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (error != std::errc() || end != step.data() + step.size()) return std::nullopt;
  if (index < 0) index += static_cast<std::int64_t>(size);
  if (index < 0 || index >= static_cast<std::int64_t>(size)) return std::nullopt;
  return static_cast<std::size_t>(index);
}

Json* Step(Json& at, const std::string& step) {
  if (at.AsObject()) return at.Find(step);
  Json::Array* const items = at.AsArray();
  const std::optional<std::size_t> index = items ? IndexIn(step, items->size()) : std::nullopt;
  return index ? &(*items)[*index] : nullptr;
}

struct Place {
  Json* parent = nullptr;  // Null: the path is the whole document.
  std::string step;
  Json* value = nullptr;  // Null: nothing is there.
};

std::optional<Place> Locate(Json& document, std::string_view pointer) {
  std::vector<std::string> steps;
  if (!SplitPointer(pointer, steps)) return std::nullopt;
  Place place{nullptr, "", &document};
  for (std::string& step : steps) {
    if (!place.value) return std::nullopt;
    place = {place.value, std::move(step), nullptr};
    place.value = Step(*place.parent, place.step);
  }
  if (place.parent && !place.parent->is_object() && !place.parent->AsArray()) return std::nullopt;
  return place;
}

bool Add(Json& document, std::string_view pointer, Json value) {
  const std::optional<Place> place = Locate(document, pointer);
  if (!place) return false;
  if (!place->parent) {
    document = std::move(value);
    return true;
  }
  Json::Array* const items = place->parent->AsArray();
  if (!items) {
    (*place->parent)[place->step] = std::move(value);
    return true;
  }
  const std::optional<std::size_t> index = place->step == "-" ? items->size() : IndexIn(place->step, items->size() + 1);
  if (!index) return false;
  items->insert(items->begin() + static_cast<std::ptrdiff_t>(*index), std::move(value));
  return true;
}

bool Remove(Json& document, std::string_view pointer) {
  const std::optional<Place> place = Locate(document, pointer);
  if (!place || !place->parent || !place->value) return false;
  if (Json::Array* const items = place->parent->AsArray()) {
    items->erase(items->begin() + (place->value - items->data()));
  } else {
    place->parent->Erase(place->step);
  }
  return true;
}

std::optional<Json> Read(Json& document, std::string_view pointer) {
  const std::optional<Place> place = Locate(document, pointer);
  return place && place->value ? std::optional(*place->value) : std::nullopt;
}

bool Test(Json& document, std::string_view pointer, const Json& wanted) {
  const std::optional<Place> place = Locate(document, pointer);
  if (!place) return false;
  return place->value ? *place->value == wanted : wanted.is_null();
}

std::string TextAt(const Json& operation, std::string_view name) {
  const Json* const value = operation.Find(name);
  return value && value->AsString() ? *value->AsString() : std::string();
}

bool Carry(Json& document, const Json& operation) {
  const std::string name = TextAt(operation, "op"), path = TextAt(operation, "path"), from = TextAt(operation, "from");
  const Json* const given = operation.Find("value");
  const Json value = given ? *given : Json();  // The server takes a missing value for null.
  if (!operation.Find("path")) return false;
  if (name == "remove") return Remove(document, path);
  if (name == "test") return Test(document, path, value);
  if (name == "add") return Add(document, path, value);
  if (name == "replace") {
    const std::optional<Place> place = Locate(document, path);
    if (!place || !place->value) return false;
    *place->value = value;
    return true;
  }
  if (name != "move" && name != "copy") return false;
  std::optional<Json> moved = Read(document, from);
  if (!moved || (name == "move" && !Remove(document, from))) return false;
  return Add(document, path, *std::move(moved));
}

}  // namespace

Status ApplyJsonPatch(Json& document, const Json& patch) {
  if (patch.is_null()) return {};  // No operations, as Go reads it.
  const Json::Array* const operations = patch.AsArray();
  if (!operations) return Unreadable(patch, "[]handlers.jsonPatchOp");
  for (const Json& operation : *operations) {
    if (!operation.is_object()) return Unreadable(operation, "handlers.jsonPatchOp");
  }
  for (const Json& operation : *operations) {
    if (!Carry(document, operation)) return Refused();
  }
  return {};
}

}  // namespace kube::testing

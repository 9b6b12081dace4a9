// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/patch.h"

namespace kube {
namespace {

std::string Pointer(JsonPatch::Path path) {
  std::string pointer;
  for (const std::string_view part : path) {
    pointer += '/';
    for (const char c : part) {
      if (c == '~') pointer += "~0";
      else if (c == '/') pointer += "~1";
      else pointer += c;
    }
  }
  return pointer;
}

}  // namespace

JsonPatch& JsonPatch::Append(std::string_view op, Path path, Json value) {
  operations_.Append(Json::MakeObject({{"op", op}, {"path", Pointer(path)}, {"value", std::move(value)}}));
  return *this;
}

JsonPatch& JsonPatch::Remove(Path path) {
  operations_.Append(Json::MakeObject({{"op", "remove"}, {"path", Pointer(path)}}));
  return *this;
}

Json MergePatchBetween(const Json& from, const Json& to) {
  Json patch = Json::MakeObject();
  for (const auto& [key, value] : *to.AsObject()) {
    const Json* before = from.Find(key);
    if (before && *before == value) continue;
    if (before && before->is_object() && value.is_object()) patch[key] = MergePatchBetween(*before, value);
    else patch[key] = value;
  }
  for (const auto& [key, value] : *from.AsObject()) {
    if (to.Find(key) == nullptr) patch[key] = Json();
  }
  return patch;
}

}  // namespace kube

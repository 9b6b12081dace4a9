// SPDX-License-Identifier: Apache-2.0
// Building patches.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/model/json.h"

namespace kube {

// A JSON patch (RFC 6902), operation by operation. The path's parts are escaped here.
//
//   JsonPatch().Test({"metadata", "uid"}, uid).Add({"spec", "replicas"}, 5).operations()
class JsonPatch {
 public:
  using Path = std::initializer_list<std::string_view>;
  JsonPatch& Test(Path path, Json value) { return Append("test", path, std::move(value)); }
  JsonPatch& Add(Path path, Json value) { return Append("add", path, std::move(value)); }  // Or replaces.
  JsonPatch& Remove(Path path);
  const Json& operations() const { return operations_; }

 private:
  JsonPatch& Append(std::string_view op, Path path, Json value);
  Json operations_ = Json::MakeArray();
};

// The merge patch (RFC 7396) that turns `from` into `to`, both objects; an empty object if they are equal.
Json MergePatchBetween(const Json& from, const Json& to);

}  // namespace kube

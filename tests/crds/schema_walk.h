// SPDX-License-Identifier: Apache-2.0
// Looks at every field of a schema, also below lists.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/crds/crd_json.h"

namespace api {

// Calls `each` with the path and the schema of each field: ".spec.space.gpuTypes[].name". Not those of
// metadata.
inline void WalkSchema(const kube::Json& schema, const std::string& path,
                       const std::function<void(const std::string&, const kube::Json&)>& each) {
  if (const kube::Json* items = schema.Find("items")) WalkSchema(*items, path + "[]", each);
  const kube::Json* properties = schema.Find("properties");
  if (properties == nullptr) return;
  for (const auto& [name, field] : *properties->AsObject()) {
    if (path.empty() && name == "metadata") continue;
    const std::string its_path = path + "." + std::string(name);
    each(its_path, field);
    WalkSchema(field, its_path, each);
  }
}

// Paths of the fields for which `is_wrong` says so.
inline std::vector<std::string> FieldsThat(const kube::Kind& kind,
                                           const std::function<bool(const kube::Json&)>& is_wrong) {
  std::vector<std::string> wrong;
  WalkSchema(SchemaOf(kind, {}), "", [&](const std::string& path, const kube::Json& field) {
    if (is_wrong(field)) wrong.push_back(path);
  });
  return wrong;
}

inline bool LacksDescription(const kube::Json& field) { return At(field, {"description"}).is_null(); }
inline bool IsFloat(const kube::Json& field) { return At(field, {"type"}) == kube::Json("number"); }
inline bool IsListWithoutLimit(const kube::Json& field) {
  return At(field, {"type"}) == kube::Json("array") && field.Find("maxItems") == nullptr;
}

// The messages of a schema's rules, one a line.
inline std::string RulesOf(const kube::Json& schema) {
  std::string all;
  const kube::Json rules = At(schema, {"x-kubernetes-validations"});
  if (rules.AsArray() == nullptr) return all;
  for (const kube::Json& rule : *rules.AsArray()) all += *rule.Find("message")->AsString() + "\n";
  return all;
}

}  // namespace api

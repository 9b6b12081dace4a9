// SPDX-License-Identifier: Apache-2.0
// Reads the manifests of our CRDs in tests.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "crds/types/all_crds.h"

namespace api {

// What is at the end of the path; null: nothing.
inline kube::Json At(const kube::Json& json, std::initializer_list<std::string_view> path) {
  const kube::Json* found = json.At(path);
  return found ? *found : kube::Json();
}

// The manifest of one of AllCrds(); null, and a failure, if it is not among them.
inline kube::Json CrdOf(const kube::Kind& kind) {
  for (const kube::CrdInfo& info : AllCrds()) {
    if (info.kind == &kind) return MakeCrd(info);
  }
  ADD_FAILURE() << kind.plural << "." << kind.group << " is not in AllCrds()";
  return {};
}

// Its only version.
inline kube::Json VersionOf(const kube::Kind& kind) { return At(CrdOf(kind), {"spec", "versions"}).AsArray()->front(); }

// The schema of a field of that version.
inline kube::Json SchemaOf(const kube::Kind& kind, std::initializer_list<std::string_view> fields) {
  kube::Json schema = At(VersionOf(kind), {"schema", "openAPIV3Schema"});
  for (const std::string_view field : fields) schema = At(schema, {"properties", field});
  return schema;
}

// Names of the columns: those of `kubectl get`, and those that -o wide adds.
struct Columns {
  std::vector<std::string> shown, wide;
};
inline Columns ColumnsOf(const kube::Kind& kind) {
  Columns names;
  const kube::Json columns = At(VersionOf(kind), {"additionalPrinterColumns"});
  for (const kube::Json& column : *columns.AsArray()) {
    const kube::Json* priority = column.Find("priority");
    const bool is_wide = priority && priority->AsInt() && *priority->AsInt() > 0;
    (is_wide ? names.wide : names.shown).push_back(*column.Find("name")->AsString());
  }
  return names;
}

}  // namespace api

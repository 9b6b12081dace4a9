// SPDX-License-Identifier: Apache-2.0
// Server-side apply: who owns which field, and how an applied configuration merges with the live object
// (sigs.k8s.io/structured-merge-diff; KEP-555). Pure functions on values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/json.h"
#include "clientlib/testing/api_server/structural_schema.h"

namespace kube::testing {

// One writer. `operation` is "Apply" or "Update".
struct FieldManager {
  std::string name, operation, api_version, subresource;
};

// A field of the applied configuration that another manager owns with another value.
struct ApplyConflict {
  std::string manager, operation, field;  // "kubectl", "Update", ".spec.replicas"
  std::string message;                    // As in the 409's causes: conflict with "kubectl" using apps/v1
};

// Objects carry metadata.managedFields, in the wire's FieldsV1 format. `now` is what `time` becomes, RFC 3339.
// `time` is set only by a write that changed the object; an object without managedFields gets none from an update, and
// the manager "before-first-apply" from an apply.
// `schema` may be null: maps then merge by key and lists are atomic, as for a CRD without list types.

// Merges `applied` into `live` (null: it is created) and returns the new object with managedFields: fields of this
// manager's last apply that are missing now are removed unless another manager owns them too. Without `force`,
// conflicts are returned in `conflicts` and the result has no meaning then.
Json ApplyConfiguration(const StructuralSchema* schema, const Json& live, const Json& applied,
                        const FieldManager& manager, bool force, std::string_view now,
                        std::vector<ApplyConflict>& conflicts);

// After any other write: `after` gets managedFields in which `manager` owns what changed from `before` (null: all of
// it), and nobody owns what is gone. managedFields sent by the client are ignored.
void TrackUpdate(const StructuralSchema* schema, const Json& before, Json& after, const FieldManager& manager,
                 std::string_view now);

}  // namespace kube::testing

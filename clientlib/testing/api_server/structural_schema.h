// SPDX-License-Identifier: Apache-2.0
// An OpenAPI v3 structural schema as the API server uses it for admission: prunes, defaults, validates, and says
// how lists and maps merge (x-kubernetes-list-type, -list-map-keys, -map-type).
//
// Does not evaluate x-kubernetes-validations (CEL): the only part of a CRD's schema that is left out. Immutable once
// made; thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/json.h"

namespace kube::testing {

// One cause of a 422, as in Status.details.causes.
struct FieldError {
  std::string reason;   // "FieldValueInvalid", "FieldValueRequired", "FieldValueNotSupported", "FieldValueTypeInvalid",
                        // "FieldValueTooLong", "FieldValueTooMany", "FieldValueDuplicate"
  std::string message;  // "Invalid value: 0: spec.workersSpec.minReplicas in body should be greater than or equal to 1"
  std::string field;    // "spec.workersSpec.minReplicas"; "<nil>" for oneOf and the like, as the server does.
};

class StructuralSchema {
 public:
  enum class ListType { kAtomic, kSet, kMap };

  // Errors: kInvalidArgument if it is not structural.
  static Result<std::shared_ptr<const StructuralSchema>> Parse(const Json& open_api);
  virtual ~StructuralSchema() = default;

  // The schema of a field; null: not specified. `additionalProperties` answers for any name.
  virtual const StructuralSchema* Property(std::string_view name) const = 0;
  virtual bool HasProperty(std::string_view name) const = 0;  // Among `properties`: a field, not a map's key.
  virtual const StructuralSchema* Items() const = 0;
  virtual ListType list_type() const = 0;  // Atomic unless stated.
  virtual const std::vector<std::string>& list_map_keys() const = 0;
  virtual bool is_atomic_map() const = 0;
  virtual bool preserves_unknown_fields() const = 0;
  virtual const Json* default_value() const = 0;  // Null: none.

  // Removes unknown fields (not below preserves_unknown_fields()). Keeps apiVersion, kind and metadata of the root.
  virtual void Prune(Json& object) const = 0;
  // Fills in `default`s in existing objects. A null where the schema allows none becomes the default, or is removed.
  virtual void SetDefaults(Json& object) const = 0;
  virtual std::vector<FieldError> Validate(const Json& object) const = 0;
};

}  // namespace kube::testing

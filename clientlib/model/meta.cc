// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/meta.h"

#include "clientlib/model/field.h"

namespace kube {

std::span<const FieldInfo> OwnerReference::Fields() {
  using T = OwnerReference;
  static constexpr FieldInfo kFields[] = {
      Field<&T::api_version>("apiVersion", {.required = true}),
      Field<&T::kind>("kind", {.required = true}),
      Field<&T::name>("name", {.required = true}),
      Field<&T::uid>("uid", {.required = true}),
      Field<&T::controller>("controller"),
      Field<&T::block_owner_deletion>("blockOwnerDeletion"),
  };
  return kFields;
}

std::span<const FieldInfo> ObjectMeta::Fields() {
  using T = ObjectMeta;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name"),
      Field<&T::generate_name>("generateName"),
      Field<&T::ns>("namespace"),
      Field<&T::uid>("uid"),
      Field<&T::resource_version>("resourceVersion"),
      Field<&T::generation>("generation", {.omit_zero = true}),
      Field<&T::creation_timestamp>("creationTimestamp"),
      Field<&T::deletion_timestamp>("deletionTimestamp"),
      Field<&T::labels>("labels"),
      Field<&T::annotations>("annotations"),
      Field<&T::owner_references>("ownerReferences"),
      Field<&T::finalizers>("finalizers"),
  };
  return kFields;
}

const OwnerReference* ObjectMeta::Controller() const {
  for (const OwnerReference& owner : owner_references) {
    if (owner.controller.value_or(false)) return &owner;
  }
  return nullptr;
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/volumes.h"

namespace kube {

std::span<const FieldInfo> PersistentVolumeClaimSource::Fields() {
  static constexpr FieldInfo kFields[] = {
      Field<&PersistentVolumeClaimSource::claim_name>("claimName", {.required = true})};
  return kFields;
}

std::span<const FieldInfo> EphemeralVolumeSource::Fields() { return {}; }

std::span<const FieldInfo> Volume::Fields() {
  using T = Volume;
  static constexpr FieldInfo kFields[] = {
      Field<&T::name>("name", {.required = true}),
      Field<&T::claim>("persistentVolumeClaim"),
      Field<&T::ephemeral>("ephemeral"),
  };
  return kFields;
}

std::span<const FieldInfo> PersistentVolumeClaimSpec::Fields() {
  using T = PersistentVolumeClaimSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::volume_name>("volumeName"),
      Field<&T::storage_class_name>("storageClassName"),
  };
  return kFields;
}

std::span<const FieldInfo> PersistentVolumeClaimStatus::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&PersistentVolumeClaimStatus::phase>("phase")};
  return kFields;
}

const Kind& PersistentVolumeClaim::ResourceKind() {
  static constexpr FieldInfo kFields[] = {
      Field<&PersistentVolumeClaim::spec>("spec"),
      Field<&PersistentVolumeClaim::status>("status"),
  };
  static const Kind kKind = MakeKind<PersistentVolumeClaim>(
      {.version = "v1", .kind = "PersistentVolumeClaim", .plural = "persistentvolumeclaims", .fields = kFields});
  return kKind;
}

std::span<const FieldInfo> VolumeNodeAffinity::Fields() {
  static constexpr FieldInfo kFields[] = {Field<&VolumeNodeAffinity::required>("required")};
  return kFields;
}

std::span<const FieldInfo> ClaimReference::Fields() {
  using T = ClaimReference;
  static constexpr FieldInfo kFields[] = {
      Field<&T::ns>("namespace"),
      Field<&T::name>("name"),
  };
  return kFields;
}

std::span<const FieldInfo> PersistentVolumeSpec::Fields() {
  using T = PersistentVolumeSpec;
  static constexpr FieldInfo kFields[] = {
      Field<&T::claim_ref>("claimRef"),
      Field<&T::node_affinity>("nodeAffinity"),
  };
  return kFields;
}

const Kind& PersistentVolume::ResourceKind() {
  static constexpr FieldInfo kFields[] = {Field<&PersistentVolume::spec>("spec")};
  static const Kind kKind = MakeKind<PersistentVolume>({.version = "v1",
                                                        .kind = "PersistentVolume",
                                                        .plural = "persistentvolumes",
                                                        .is_namespaced = false,
                                                        .fields = kFields});
  return kKind;
}

const Kind& StorageClass::ResourceKind() {
  static constexpr FieldInfo kFields[] = {Field<&StorageClass::volume_binding_mode>("volumeBindingMode")};
  static const Kind kKind = MakeKind<StorageClass>({.group = "storage.k8s.io",
                                                    .version = "v1",
                                                    .kind = "StorageClass",
                                                    .plural = "storageclasses",
                                                    .is_namespaced = false,
                                                    .fields = kFields});
  return kKind;
}

}  // namespace kube

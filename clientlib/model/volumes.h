// SPDX-License-Identifier: Apache-2.0
// Volumes that restrict where a pod can run: claims, the volumes behind them, and their classes. Never send one back
// whole. Values.
#pragma once

#include <span>
#include <vector>

#include "clientlib/model/affinity.h"
#include "clientlib/model/compact_string.h"
#include "clientlib/model/kind.h"

namespace kube {

struct PersistentVolumeClaimSource {
  CompactString claim_name;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PersistentVolumeClaimSource&, const PersistentVolumeClaimSource&) = default;
};

// Only its presence matters: the claim is named after pod and volume.
struct EphemeralVolumeSource {
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const EphemeralVolumeSource&, const EphemeralVolumeSource&) = default;
};

// A volume in a pod. Only volumes with a claim are kept: every pod also has a volume for its token.
struct Volume {
  CompactString name;
  Box<PersistentVolumeClaimSource> claim;
  Box<EphemeralVolumeSource> ephemeral;
  bool is_kept() const { return claim || ephemeral; }
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const Volume&, const Volume&) = default;
};

struct PersistentVolumeClaimSpec {
  CompactString volume_name, storage_class_name;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PersistentVolumeClaimSpec&, const PersistentVolumeClaimSpec&) = default;
};

struct PersistentVolumeClaimStatus {
  CompactString phase;  // "Pending", "Bound" or "Lost".
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PersistentVolumeClaimStatus&, const PersistentVolumeClaimStatus&) = default;
};

struct PersistentVolumeClaim : Object {
  PersistentVolumeClaimSpec spec;
  PersistentVolumeClaimStatus status;
  static const Kind& ResourceKind();
};

struct VolumeNodeAffinity {
  Box<NodeSelector> required;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const VolumeNodeAffinity&, const VolumeNodeAffinity&) = default;
};

struct ClaimReference {
  CompactString ns, name;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const ClaimReference&, const ClaimReference&) = default;
};

struct PersistentVolumeSpec {
  ClaimReference claim_ref;  // The claim that the volume belongs to; empty: none yet.
  VolumeNodeAffinity node_affinity;
  static std::span<const FieldInfo> Fields();
  friend bool operator==(const PersistentVolumeSpec&, const PersistentVolumeSpec&) = default;
};

struct PersistentVolume : Object {
  PersistentVolumeSpec spec;
  static const Kind& ResourceKind();
};

struct StorageClass : Object {
  CompactString volume_binding_mode;  // "Immediate" or "WaitForFirstConsumer".
  static const Kind& ResourceKind();
};

}  // namespace kube

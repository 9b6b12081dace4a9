// SPDX-License-Identifier: Apache-2.0
// Where a pod can run because of its volumes, as the scheduler's VolumeBinding decides. Pure functions.
//
// Not looked at: how many volumes a node attaches, ReadWriteOncePod, capacity and allowedTopologies of volumes that are
// still to be made, zone labels of volumes without a node affinity.
#pragma once

#include <string>
#include <vector>

#include "clientlib/model/pod.h"

namespace grus {

struct VolumeLimits {
  std::vector<kube::NodeSelector> affinity;  // Of the volumes that are bound: each must match.
  // Why the scheduler finds no node for the pod: "PersistentVolumeClaim team-a/data does not exist". Empty: nothing.
  std::string problem;
};

// What is known of one claim. Null: the object does not exist, or it cannot be known.
struct ClaimFacts {
  const kube::PersistentVolumeClaim* claim = nullptr;
  const kube::PersistentVolume* volume = nullptr;           // The one that the claim names.
  const kube::StorageClass* storage_class = nullptr;        // Of the claim.
  bool are_volumes_known = true, are_classes_known = true;  // False: grus may not read them, and null says nothing.
};

// The class that a claim asks for; empty: none.
std::string ClassOf(const kube::PersistentVolumeClaim& claim);

// `name` is the claim's, as the user knows it. The first problem is kept.
void AddClaim(VolumeLimits& limits, const std::string& name, const ClaimFacts& facts);

// The names of the claims of a pod, in its namespace; those of ephemeral volumes only if the pod has a name.
std::vector<std::string> VolumeClaimsOf(const kube::Pod& pod);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// What placement must know, read from the cluster's objects.
#pragma once

#include "clientlib/model/core_v1.h"
#include "controllers/policy/node_match.h"

namespace grus {

// What a pod holds on its node, as the scheduler counts it.
Resources RequestOf(const kube::Pod& pod);
NodeState StateOf(const kube::Node& node);
PodShape ShapeOf(const kube::Pod& pod);  // Without its volumes, which the pod only names.

// Of a bound pod only what other pods' constraints look at: labels, host ports, what it forbids to others.
PodShape FootprintOf(const kube::Pod& pod);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Which container of a pod trains: the first that asks for GPUs, else the first. Pure functions.
#pragma once

#include <string>

#include "clientlib/model/json.h"
#include "clientlib/model/pod.h"

namespace grus {

// Null: the template has no container. The pointer is into `pod_template`.
const kube::Json* TrainingContainerOf(const kube::Json& pod_template);
kube::Json* TrainingContainerOf(kube::Json& pod_template);

bool AsksForGpus(const kube::Json& container);  // Or for part of one.

// Its name; empty: the pod has no container.
std::string TrainingContainerOf(const kube::Pod& pod);

}  // namespace grus

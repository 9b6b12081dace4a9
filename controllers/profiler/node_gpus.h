// SPDX-License-Identifier: Apache-2.0
// What nodes and pods say of the hardware that they have or may use. Pure.
#pragma once

#include <optional>

#include "clientlib/model/core_v1.h"
#include "clientlib/model/pod.h"
#include "controllers/telemetry/run_book.h"

namespace grus {

// As NVIDIA's feature discovery labels the node. The memory is not known where pods have parts of GPUs.
NodeGpus NodeGpusOf(const kube::Node& node);

// Cores that all its containers may use together; nullopt: one has no limit.
std::optional<double> CoreLimitOf(const kube::Pod& pod);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The priority that a pod will get when it is created. Pure but for the cache that it reads.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "clientlib/cache/informer.h"

namespace grus {

// `classes` is the cache of PriorityClasses, `name` the pod's; empty: the default of the cluster, or 0. 0 also where
// the classes cannot be read. nullopt: there is no such class, and the API server will refuse the pod.
std::optional<int> PriorityOf(const kube::Informer& classes, std::string_view name);

// The class of pods that name none; empty: there is none, or it cannot be known.
std::string DefaultClass(const kube::Informer& classes);

}  // namespace grus

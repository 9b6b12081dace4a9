// SPDX-License-Identifier: Apache-2.0
// What the containers of a pod need together. Pure.
#pragma once

#include <map>
#include <string_view>

#include "clientlib/model/pod.h"

namespace grus {

// By resource name, as the scheduler and quotas count (KEP-753): the sum over the containers and sidecars, or what an
// init container needs beside the sidecars before it, whichever is more. `part`: requests or limits. Neither the
// overhead nor the resources of the pod as a whole count. Views into `spec`. Time: n log n in all entries, of which a
// pod may have thousands.
std::map<std::string_view, kube::Quantity> PodNeeds(const kube::PodSpec& spec,
                                                    kube::ResourceList kube::ResourceRequirements::*part);

}  // namespace grus

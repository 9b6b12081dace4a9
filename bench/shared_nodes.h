// SPDX-License-Identifier: Apache-2.0
// Nodes that share their GPUs, as if grus-node-agent and a kubelet ran there.
#pragma once

#include <memory>
#include <vector>

#include "clientlib/client/client.h"
#include "clientlib/model/core_v1.h"

namespace bench {

// Each node with the label by which GPUs are shared in thousandths gets so many GPUs: the capacity that its kubelet
// would tell, and the inventory as the agent writes it. Returns these nodes.
kube::Result<std::vector<std::shared_ptr<const kube::Node>>> ShareGpus(kube::Client& client, int gpus_of_node);

// All nodes of the cluster get so many GPUs of so many GiB, which are shared as gpushare does.
kube::Status ShareGpuMemory(kube::Client& client, int gpus_of_node, int gib);

}  // namespace bench

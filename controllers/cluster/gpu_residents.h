// SPDX-License-Identifier: Apache-2.0
// Which pods have parts of which GPU, as far as the pod cache knows, and what they run. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/cache/informer.h"
#include "clientlib/model/core_v1.h"

namespace grus {

// On a pod that the extender has bound: the fingerprint of its workload. A user may change it, and then misleads
// predictions about pods of the own namespace: a profile counts for those only.
inline constexpr char kWorkloadAnnotation[] = "sharing.ai.centauruscloud.io/workload";

class GpuResidents {
 public:
  // Adds an index to `pods`, which must outlive it. REQUIRES: the informer is not started yet.
  explicit GpuResidents(kube::Informer& pods) : pods_(pods), by_gpu_(pods.AddIndex(KeysOf)) {}

  // Pods that are bound to the node, have not ended, and have a part of this GPU, or all of it by its name.
  std::vector<std::shared_ptr<const kube::Pod>> On(std::string_view node, std::string_view gpu) const;

 private:
  static std::vector<std::string> KeysOf(const kube::Object& pod);

  const kube::Informer& pods_;
  const kube::Store::IndexId by_gpu_;
};

// Whether it may be the name of a WorkloadProfile: what users write on pods may be anything.
bool IsWorkloadName(std::string_view name);

// The fingerprint of what the pod runs: that of its ElasticHorovodJob, if it belongs to one of `jobs` (null: they are
// not known), else what the extender wrote. Empty: not known. Always a possible name.
std::string WorkloadOf(const kube::Pod& pod, const kube::Informer* jobs);

}  // namespace grus

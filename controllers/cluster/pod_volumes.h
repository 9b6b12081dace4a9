// SPDX-License-Identifier: Apache-2.0
// Where the volumes of a pod let it run, read from the caches. Tells who must look again when that changes.
//
// Without the permission to read claims, every pod may run anywhere; likewise for volumes and classes. Thread-safe;
// callbacks run on the thread that brought the change.
#pragma once

#include <functional>
#include <vector>

#include "clientlib/cache/informer.h"
#include "controllers/policy/volume_limits.h"

namespace grus {

class PodVolumes {
 public:
  // Registers handlers: the informers must outlive this, and be stopped and joined before it goes.
  PodVolumes(kube::Informer& claims, kube::Informer& volumes, kube::Informer& classes);

  // Gets a claim whose change may allow its pods other nodes than before. REQUIRES: before the informers start.
  void OnVolumeClaim(std::function<void(const kube::ObjectKey& claim)> callback) {
    on_volume_claim_.push_back(std::move(callback));
  }

  VolumeLimits LimitsOf(const kube::Pod& pod) const;

 private:
  void Tell(const kube::ObjectKey& claim) const;
  void TellOfVolume(const kube::Change& change) const;
  void TellOfClass(const kube::Change& change) const;

  const kube::Informer& claims_;
  const kube::Informer& volumes_;
  const kube::Informer& classes_;
  std::vector<std::function<void(const kube::ObjectKey&)>> on_volume_claim_;
};

}  // namespace grus

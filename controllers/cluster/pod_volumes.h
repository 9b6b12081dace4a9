// SPDX-License-Identifier: Apache-2.0
// What the caches say of the volumes of a pod: where they let it run, and who is to look again when that changes.
//
// Without the permission to read claims nothing is known, and every pod may run anywhere; likewise for volumes and
// classes. Thread-safe; callbacks are called on the thread that brought the news.
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

  // A claim by which a pod may be placed otherwise than before. REQUIRES: before the informers start.
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

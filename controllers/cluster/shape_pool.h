// SPDX-License-Identifier: Apache-2.0
// One shape for all pods that are alike to placement: those of one set differ in labels that say nothing to it.
//
// Not thread-safe; the owner serialises access. What it gives out may outlive it.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

#include "controllers/policy/pod_shape.h"

namespace grus {

class ShapePool {
 public:
  // The one that is there, as long as somebody has it.
  ShapePtr Share(PodShape shape);

 private:
  std::unordered_map<std::size_t, std::vector<std::weak_ptr<const PodShape>>> shapes_;  // By hash.
  std::size_t swept_at_ = 0;
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Several ways of holding containers to their parts, as one. Of those, at most one gives anything at a time; each
// remembers for itself what it has given.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nodeagent/sharing/part_enforcer.h"

namespace grus {

class PartEnforcers final : public PartEnforcer {
 public:
  // All must outlive it.
  explicit PartEnforcers(std::vector<PartEnforcer*> all) : all_(std::move(all)) {}

  bool MayGive(const std::string& gpu) const override;
  kube::Status Give(const PartToGive& part, ContainerSetup& setup) override;
  kube::Status MayStart(PartResource resource, const std::vector<PartId>& ids, const HeldParts* holder) override;
  Enforcement WayOf(const HeldParts& part) const override;

 private:
  const std::vector<PartEnforcer*> all_;
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// What the ledger tells of each change, so that nobody else counts what is held.
#pragma once

#include <string>

#include "controllers/policy/ledger_node.h"

namespace grus {

// It must not change the ledger.
class HoldingsObserver {
 public:
  virtual ~HoldingsObserver() = default;
  virtual std::string PoolOf(const NodeState& node) const = 0;  // Where the node is; becomes NodeState::pool.
  virtual PoolPlacement PlacementIn(const std::string& pool) const = 0;
  virtual void OnNode(const LedgerNode& node) = 0;  // It has come, changed or gone.
  // `sign`: 1 if the owner now holds the request there, -1 if it no longer does.
  virtual void OnHeld(const LedgerNode& node, const std::string& owner, const Resources& request, int sign) = 0;
  // The same for what is held by a pod that is being deleted.
  virtual void OnEnding(const LedgerNode& node, const std::string& owner, const Resources& request, int sign) = 0;
};

}  // namespace grus

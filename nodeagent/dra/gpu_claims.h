// SPDX-License-Identifier: Apache-2.0
// Makes parts of this node's GPUs ready for the claims to which the scheduler has allocated them.
//
// What was allocated is read from the API server, never believed of the caller. A claim that is prepared stays so until
// the kubelet takes it back, also while its GPU is sick or no API server answers. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/log.h"
#include "clientlib/client/client.h"
#include "nodeagent/dra/prepared_claims.h"
#include "nodeagent/kubelet/claim_driver.h"

namespace grus {

class GpuClaims final : public ClaimDriver {
 public:
  struct Node {
    std::string name = {};                              // And that of its pool.
    std::function<std::vector<SharedGpu>()> gpus = {};  // Now. Thread-safe.
    // Of GPUs of which somebody has a part in another way than by claims: who, by UUID. Thread-safe.
    std::function<kube::Result<std::map<std::string, std::string>>()> holders_otherwise = {};
  };

  // All must outlive it.
  GpuClaims(kube::Client& client, PreparedClaims& prepared, Node node, const kube::Log& log);

  // Whether the node gives its GPUs by claims. While it does not, none is prepared that is not yet.
  void Accept(bool does) { accepts_ = does; }

  std::string name() const override { return kGpuDriver; }
  kube::Result<std::vector<ReadyDevice>> Prepare(const ClaimName& claim) override;
  kube::Status Unprepare(const ClaimName& claim) override;

  // Forgets claims that are gone, or not allocated here any more, without the kubelet's having said so.
  void RemoveStale(const std::stop_token& stop = {});

 private:
  kube::Result<AllocatedClaim> Allocated(const ClaimName& claim);
  kube::Status CheckFree(const AllocatedClaim& claim);
  kube::Result<bool> IsStale(const AllocatedClaim& claim, const std::stop_token& stop);

  kube::Client& client_;
  PreparedClaims& prepared_;
  const Node node_;
  const kube::Log& log_;
  std::atomic<bool> accepts_ = false;
  std::mutex mutex_;  // One claim is prepared after another, so that no two take the same.
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The claims that are prepared on this node: a CDI file each, which is all that is known of them, so that the agent may
// die at any moment. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "nodeagent/dra/cdi_spec.h"

namespace grus {

inline constexpr char kCdiFolder[] = "/var/run/cdi";

class PreparedClaims {
 public:
  // `folder`: where the container runtime reads CDI files; made if it is not there. Others' files are left alone.
  explicit PreparedClaims(std::string folder);

  std::vector<AllocatedClaim> List() const;  // By UID.
  std::optional<AllocatedClaim> Find(const std::string& uid) const;
  // The file is there as a whole, or not at all. kUnavailable: it cannot be written.
  kube::Status Write(const AllocatedClaim& claim);
  kube::Status Remove(const std::string& uid);  // Success if it is not there.

  std::vector<GpuPart> PartsOf(const std::string& cdi_id) const;  // See ClaimedParts.
  std::map<std::string, std::string> Holders() const;  // Of each GPU of which any holds a part, by UUID: one of them.

 private:
  std::string PathOf(const std::string& uid) const;

  const std::string folder_;
  mutable std::mutex mutex_;                      // Guards what follows, and the files.
  std::map<std::string, AllocatedClaim> claims_;  // By UID, as the files have them.
};

}  // namespace grus

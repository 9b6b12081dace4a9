// SPDX-License-Identifier: Apache-2.0
// The GPUs that reported an error which no application causes (an Xid): it stays true of them when the agent starts
// again.
//
// They are kept in a small file, as long as the node has not been rebooted and the driver has not been loaded anew:
// either gives the GPU another start. A file of another time or version, or one that makes no sense, counts as none.
// Without a boot id, and without a path, nothing outlives the agent. Calls block for the file. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "clientlib/base/log.h"

namespace grus {

struct GpuFaultsOptions {
  std::string path = {};                      // Of the file; empty: none.
  std::string proc = "/proc";                 // Where the node's boot id is.
  std::string driver = "/sys/module/nvidia";  // The kernel makes it anew, with another inode, when it loads the driver.
};

class GpuFaults {
 public:
  // Reads what is there. `log` must outlive it.
  GpuFaults(GpuFaultsOptions options, const kube::Log& log);

  std::optional<std::uint64_t> Of(const std::string& uuid) const;
  // Writes at once: the driver may hang next, and this process end. What cannot be written is told once, and tried
  // again with what is put next.
  void Put(const std::string& uuid, std::uint64_t xid);
  void Forget(const std::string& uuid);  // Another GPU is in its place.
  // Forgets all of before. True if there was any.
  bool ForgetIfDriverIsNew();

 private:
  std::string Epoch() const;  // Empty: not known.
  void Read();
  void Write();

  const GpuFaultsOptions options_;
  const kube::Log& log_;
  std::string epoch_;
  std::map<std::string, std::uint64_t> xids_;  // By UUID.
  bool is_told_ = false;                       // That it cannot be written.
};

}  // namespace grus

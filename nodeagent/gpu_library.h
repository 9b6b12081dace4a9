// SPDX-License-Identifier: Apache-2.0
// What a GPU driver tells of its GPUs and of the processes on them.
//
// A number that the driver does not have is left out; it is never zero in its place. GPUs are named by their place in
// what the last Open() returned. Error codes: kNotFound: there is no driver on this machine. kGone: this GPU is lost,
// the others go on. kUnavailable: nothing works until the next Open(). REQUIRES: for all but Open(), that the last
// Open() succeeded. Calls block. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/base/result.h"

namespace grus {

struct Gpu {
  std::string uuid = {};  // "GPU-4f2c..."
  int index = 0;          // As nvidia-smi counts.
  std::string model = {}, driver_version = {};
  bool is_divided = false;                                             // Into instances (MIG).
  std::optional<std::uint32_t> pcie_generation = {}, pcie_lanes = {};  // The most that GPU and slot can do.
  friend bool operator==(const Gpu&, const Gpu&) = default;
};

struct GpuSample {
  std::optional<std::uint32_t> utilization_percent = {};        // Of the time, a kernel ran.
  std::optional<std::uint32_t> memory_controller_percent = {};  // Of the time, memory was read or written.
  std::optional<std::uint64_t> memory_used_bytes = {}, memory_total_bytes = {};
  std::optional<std::uint64_t> pcie_receive_rate = {}, pcie_transmit_rate = {};            // Bytes a second.
  std::optional<std::uint64_t> nvlink_received_bytes = {}, nvlink_transmitted_bytes = {};  // Counters.
  std::optional<std::uint32_t> power_milliwatts = {};
  std::optional<std::uint64_t> last_xid = {};  // The last error that the driver reported; none since the agent began.
};

struct PcieRates {
  std::optional<std::uint64_t> receive = {}, transmit = {};  // Bytes a second.
};

struct GpuProcess {
  int pid = 0;  // In the agent's own PID namespace.
  std::optional<std::uint64_t> memory_bytes = {};
  // Since the last look at this GPU, and by PID: it may be that of another process that had the PID before.
  std::optional<std::uint32_t> sm_percent = {}, memory_controller_percent = {};
};

struct Xid {
  std::size_t gpu = 0;
  std::uint64_t code = 0;
};

class GpuLibrary {
 public:
  virtual ~GpuLibrary() = default;

  // Connects to the driver, anew if it was connected. GPUs that are lost are left out.
  virtual kube::Result<std::vector<Gpu>> Open() = 0;
  virtual std::size_t left_out() const = 0;  // How many the last Open() left out since they are lost.
  // All but the PCIe rates and the Xid.
  virtual kube::Result<GpuSample> Sample(std::size_t gpu) = 0;
  // Takes 40 ms: the driver watches the bus for so long.
  virtual kube::Result<PcieRates> Pcie(std::size_t gpu) = 0;
  virtual kube::Result<std::vector<GpuProcess>> Processes(std::size_t gpu) = 0;  // Each PID once.
  virtual std::vector<Xid> NewXids() = 0;                                        // Since the last call, oldest first.
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Amounts of what a node offers and a pod asks for. A value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace grus {

inline constexpr char kGpuResource[] = "nvidia.com/gpu";
inline constexpr char kDeviceClassPrefix[] = "deviceclass.resource.kubernetes.io/";  // Then the name of a DeviceClass.

// Whether it counts devices on each of which one process trains: GPUs of any vendor, their parts (MIG), TPUs and the
// like. Goes by the names that the vendors' device plugins use. The name of a DeviceClass tells nothing: all count, but
// for "compute-domain-...".
bool IsAccelerator(std::string_view resource);

struct Resources {
  std::int64_t milli_cpu = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t pods = 0;
  std::vector<std::pair<std::string, std::int64_t>> extended;  // GPUs and their like, sorted by name.

  std::int64_t Extended(std::string_view name) const;
  // Of "cpu" in thousandths, "memory", "pods", or of the others.
  std::int64_t Amount(std::string_view name) const {
    if (name == "cpu") return milli_cpu;
    if (name == "memory") return memory_bytes;
    return name == "pods" ? pods : Extended(name);
  }
  // The first accelerator, or part of a GPU, of which there is some; empty: none.
  std::string_view Accelerator() const;
  void AddExtended(std::string_view name, std::int64_t amount);
  Resources& operator+=(const Resources& other) { return AddTimes(1, other); }
  Resources& operator-=(const Resources& other) { return AddTimes(-1, other); }
  Resources& operator*=(std::int64_t copies);
  // Raises each amount to that of `other`, if larger.
  void RaiseTo(const Resources& other);
  friend bool operator==(const Resources&, const Resources&) = default;

 private:
  Resources& AddTimes(std::int64_t sign, const Resources& other);
};

// "cpu 40, memory 64Mi, nvidia.com/gpu 1": what there is some of, pods aside.
std::string TextOf(const Resources& resources);

// How many pods of `request` fit into `allocatable` minus `used`; at most `at_most`.
int CopiesThatFit(const Resources& allocatable, const Resources& used, const Resources& request, int at_most);

}  // namespace grus

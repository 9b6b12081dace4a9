// SPDX-License-Identifier: Apache-2.0
// Nodes and pods, as much of them as has to do with parts of GPUs, and what their annotations say of those. Whoever
// wrote them: what makes no sense is not taken for anything. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/kind.h"

namespace grus {

struct PortOfPod {
  std::string name = {};
  std::int32_t container_port = 0;
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const PortOfPod&, const PortOfPod&) = default;
};

struct ContainerOfPod {
  std::vector<PortOfPod> ports = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const ContainerOfPod&, const ContainerOfPod&) = default;
};

struct PartPodSpec {
  std::string node_name = {};
  std::vector<ContainerOfPod> containers = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const PartPodSpec&, const PartPodSpec&) = default;
};

struct PartPodStatus {
  std::string phase = {};
  static std::span<const kube::FieldInfo> Fields();
  friend bool operator==(const PartPodStatus&, const PartPodStatus&) = default;
};

struct PartPod : kube::Object {
  PartPodSpec spec;
  PartPodStatus status;
  static const kube::Kind& ResourceKind();
};

// A GPU of which a node offers parts.
struct OfferedGpu {
  std::string uuid = {};
  std::int64_t memory_mib = 0;
  bool counts_milli = true;  // Its parts are in thousandths, too, not only in memory.
  bool is_healthy = true;
};

// A container's part of one GPU, as its pod's annotation has it.
struct NotedPart {
  std::string container = {}, gpu = {};  // UUID
  std::int64_t milli = 0, memory_mib = 0;
};

inline constexpr std::size_t kLongestAnnotation = 64 << 10;

// nullopt: the text makes no sense.
std::optional<std::vector<OfferedGpu>> ParseInventory(std::string_view text);
std::optional<std::vector<NotedPart>> ParseNotedParts(std::string_view text);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// A trace of openb: the nodes of a cluster, and the pods that arrive there (bench/data/openb/README.md has the
// columns).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "controllers/kubectl/csv.h"
#include "controllers/policy/fragmentation.h"

namespace grus {

struct OpenbNode {
  std::string name;
  FreeGpus free;
  std::int64_t memory_mib = 0;
};

struct OpenbPod {
  std::string name;
  GpuRequest request;
  std::int64_t memory_mib = 0;

  std::int64_t gpu_milli() const { return std::int64_t{request.devices} * request.device_milli; }
};

struct OpenbTrace {
  std::vector<OpenbNode> nodes;  // By name.
  std::vector<OpenbPod> pods;    // By name.

  std::int64_t gpu_milli() const;  // Of all nodes.
};

// Error kDecode: a message with file, line, column, and what to do. A pod whose GPU models no node has is no error.
kube::Result<OpenbTrace> ReadOpenbTrace(const CsvTable& nodes, const CsvTable& pods);

}  // namespace grus

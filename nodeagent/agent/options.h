// SPDX-License-Identifier: Apache-2.0
// The command line of grus-node-agent.
#pragma once

#include <cstdint>
#include <string>

#include "clientlib/base/result.h"

namespace grus {

struct AgentOptions {
  std::string node_name;
  std::string metrics_address = ":8080";
  bool alnair_names = false, alnair_annotations = false;
  bool shares_gpus = false;
  std::int64_t share_reserve_mib = 500;  // Of each GPU.
  std::string mps_control = {}, mps_folder = "/run/grus/mps", mps_shm = {};
  std::string cuda_library = "/usr/local/lib/grus/libgrus-cuda.so", cuda_folder = "/var/lib/grus/cuda",
              cuda_shares = "/run/grus/cuda";
  std::int64_t cuda_context_mib = 0;  // 0: as the driver tells of it.
  std::string proc = "/proc";
  std::string kubeconfig;

  std::string text_to_print;  // --help, --version: print this and exit 0.
};

// Errors (kInvalidArgument) name the option, its value and what is allowed.
kube::Result<AgentOptions> ParseAgentOptions(int argc, const char* const* argv);

}  // namespace grus

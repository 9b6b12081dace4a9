// SPDX-License-Identifier: Apache-2.0
// Tells the kubelet of a plugin's socket. Thread-safe.
#pragma once

#include <stop_token>
#include <string>

#include "clientlib/base/result.h"

namespace grus {

inline constexpr char kKubeletSocketName[] = "kubelet.sock";

// Tells the kubelet at `folder` that the socket `socket_name` there serves `resource`. REQUIRES: it does, as the
// kubelet connects to it before it answers. Blocks for at most 12 seconds. kUnavailable: the kubelet does not answer;
// other errors: it refuses.
kube::Status RegisterPlugin(const std::string& folder, const std::string& socket_name, const std::string& resource,
                            const std::stop_token& stop);

}  // namespace grus

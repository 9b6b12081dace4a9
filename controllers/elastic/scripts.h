// SPDX-License-Identifier: Apache-2.0
// The shell scripts that run in a job's pods.
#pragma once

#include <string>

#include "controllers/elastic/elastic_sizes.h"

namespace grus {

inline constexpr int kSshPort = 2222;  // Above 1024: the ssh server needs no privilege.
inline constexpr char kSshFolder[] = "/etc/grus/ssh";
inline constexpr char kHostsFolder[] = "/etc/grus/hosts";

// Runs the ssh server in the foreground with the job's key, as any user.
std::string WorkerScript();
// Runs horovodrun with the user's command.
std::string LauncherScript(const api::ElasticHorovodJobSpec& spec, const Sizes& sizes);
// Horovod's --host-discovery-script: prints the newer of the two host lists, names that resolve only.
std::string DiscoveryScript();

}  // namespace grus

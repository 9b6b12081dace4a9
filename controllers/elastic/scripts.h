// SPDX-License-Identifier: Apache-2.0
// The shell scripts that run in a job's pods.
#pragma once

#include <string>

#include "controllers/elastic/elastic_sizes.h"

namespace grus {

inline constexpr int kSshPort = 2222;  // Above 1024: the ssh server needs no privilege.
inline constexpr char kSshFolder[] = "/etc/grus/ssh";
inline constexpr char kHostsFolder[] = "/etc/grus/hosts";

// What a job's containers write; an emptyDir, so that the root file system may be read-only.
inline constexpr char kScratchFolder[] = "/tmp/grus";
// The launcher's exit code when every worker it trained on was lost. Not the training's failure, so not counted as one.
inline constexpr int kWorkersLostExitCode = 75;

// Runs the ssh server in the foreground with the job's key, as any user.
std::string WorkerScript();
// Waits until the training has left the worker, `seconds` at most: the ssh server's end would end it.
std::string WorkerPreStopScript(int seconds);
// Runs horovodrun with the user's command.
std::string LauncherScript(const api::ElasticHorovodJobSpec& spec, const Sizes& sizes);
// Horovod's --host-discovery-script: prints the newer of the two host lists.
std::string DiscoveryScript();

}  // namespace grus

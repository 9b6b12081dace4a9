// SPDX-License-Identifier: Apache-2.0
// The shell scripts that run in a job's pods. They lie in the job's Secret, once, rather than in each of its pods; a
// job keeps those with which it was made.
#pragma once

#include <string>

#include "controllers/elastic/elastic_sizes.h"

namespace grus {

inline constexpr int kSshPort = 2222;                  // Above 1024: the ssh server needs no privilege.
inline constexpr char kJobFolder[] = "/etc/grus/job";  // The job's Secret: its ssh key, these scripts.
inline constexpr char kHostsFolder[] = "/etc/grus/hosts";

// What a job's containers write; an emptyDir, so that the root file system may be read-only.
inline constexpr char kScratchFolder[] = "/tmp/grus";
// The launcher's exit code when every worker it trained on was lost. Not the training's failure, so not counted as one.
inline constexpr int kWorkersLostExitCode = 75;

// worker.sh: runs the ssh server in the foreground with the job's key, as any user.
std::string WorkerScript();
// pre_stop.sh SECONDS: waits until the training has left the worker, so long at most: the ssh server's end would end
// it.
std::string PreStopScript();
// launcher.sh: does `train`, which a LauncherCommand() has defined, and says what became of it.
std::string LauncherScript();
// What the launcher's shell is given: the part that is the user's, and then launcher.sh.
std::string LauncherCommand(const api::ElasticHorovodJobSpec& spec, const Sizes& sizes);
// discover_hosts.sh: Horovod's --host-discovery-script: prints the newer of the two host lists.
std::string DiscoveryScript();

}  // namespace grus

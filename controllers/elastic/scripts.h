// SPDX-License-Identifier: Apache-2.0
// The scripts that run in a job's pods. The job's Secret holds them once, instead of each pod template; a job keeps the
// scripts that it was made with.
#pragma once

#include <string>

#include "controllers/elastic/elastic_sizes.h"

namespace grus {

inline constexpr int kSshPort = 2222;                  // Above 1024: the ssh server needs no privilege.
inline constexpr char kJobFolder[] = "/etc/grus/job";  // The job's Secret: its ssh key, these scripts.
inline constexpr char kHostAlias[] = "grus-worker";    // The name of all workers in the launcher's known_hosts.
inline constexpr char kHostsFolder[] = "/etc/grus/hosts";

// Where a job's containers write; an emptyDir, so that the root file system may be read-only.
inline constexpr char kScratchFolder[] = "/tmp/grus";
// The launcher's exit code when every worker it trained on was lost. It does not count as a failure of the training.
inline constexpr int kWorkersLostExitCode = 75;
// What the kubelet says of a container that was there when its node went down; the launcher never ends with it.
inline constexpr int kNodeRestartedExitCode = 255;

// worker.sh: runs the ssh server in the foreground with the job's key, as any user.
std::string WorkerScript();
// pre_stop.sh SECONDS: waits, SECONDS at most, until the training has left the worker: it needs the ssh server.
std::string PreStopScript();
// launcher.sh: runs `train`, which LauncherCommand() defines, and reports how it ended.
std::string LauncherScript();
// The launcher's shell command: defines `train` from the spec, then runs launcher.sh.
std::string LauncherCommand(const api::ElasticHorovodJobSpec& spec, const Sizes& sizes);
// discover_hosts.sh: Horovod's --host-discovery-script: prints the newer of the two host lists.
std::string DiscoveryScript();
// sitecustomize.py: a remedy for two faults of Horovod 0.28, on PYTHONPATH in workers and launcher. Python imports it
// at each start; it does nothing until Horovod is imported.
std::string HorovodPatch();

}  // namespace grus

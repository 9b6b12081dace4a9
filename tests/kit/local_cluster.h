// SPDX-License-Identifier: Apache-2.0
// The local cluster under test (tests/cluster), which $GRUS_CLUSTER and $GRUS_CLUSTER_NAME name. All throw without
// them.
#pragma once

#include <string>

namespace kit {

// For RunCommand(): tests/cluster/cluster with these words.
std::string ClusterCommand(const std::string& words);
// The absolute path of a file of the source tree.
std::string FileOfTree(const std::string& path);
// The file that is a pod's log: text appended to it counts as printed by the pod.
std::string PodLogFile(const std::string& ns, const std::string& pod);

}  // namespace kit

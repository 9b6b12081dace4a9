// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace grus::testing {

// The file that is a pod's log on the cluster under test; whatever is appended, the pod has printed. Throws if the
// cluster does not tell.
std::string PodLogFile(const std::string& ns, const std::string& pod);

}  // namespace grus::testing

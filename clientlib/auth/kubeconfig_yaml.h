// SPDX-License-Identifier: Apache-2.0
// The YAML documents of a kubeconfig.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "clientlib/base/result.h"

namespace kube {

// Errors: kInvalidArgument with the line and the parser's message, never with any of the text; also for texts of more
// than 250,000 values and those on which yaml-cpp would never end.
Result<std::vector<YAML::Node>> LoadYaml(const std::string& text);

}  // namespace kube

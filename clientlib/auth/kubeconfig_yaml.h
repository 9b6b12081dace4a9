// SPDX-License-Identifier: Apache-2.0
// The YAML documents of a kubeconfig.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>
#include <vector>

#include "clientlib/base/result.h"

namespace kube {

// Error kInvalidArgument, with the line and the parser's message, never with any of the text: it is no YAML, has more
// than 250,000 values, or would keep yaml-cpp busy forever.
Result<std::vector<YAML::Node>> LoadYaml(const std::string& text);

}  // namespace kube

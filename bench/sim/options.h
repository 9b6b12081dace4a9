// SPDX-License-Identifier: Apache-2.0
// The options of a command of grus-sim: --NAME VALUE.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"

namespace grus {

// By name, without the dashes.
using Options = std::map<std::string, std::string, std::less<>>;

// Error kInvalidArgument: an option is not in `known`, is given twice, or has no value.
kube::Result<Options> ReadOptions(std::span<const std::string_view> arguments, std::span<const std::string_view> known);

// The value of the option. Error kInvalidArgument: it is not given.
kube::Result<std::string> Required(const Options& options, std::string_view name);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The options of a command of grus-sim: --NAME VALUE, or --NAME alone for a flag.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"

namespace grus {

// By name, without the dashes. The value of a flag is empty.
using Options = std::map<std::string, std::string, std::less<>>;

// Error kInvalidArgument: an option is in neither `known` nor `flags`, is given twice, or has no value and is no flag.
kube::Result<Options> ReadOptions(std::span<const std::string_view> arguments, std::span<const std::string_view> known,
                                  std::span<const std::string_view> flags = {});

// The value of the option. Error kInvalidArgument: it is not given.
kube::Result<std::string> Required(const Options& options, std::string_view name);

}  // namespace grus

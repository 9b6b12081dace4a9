// SPDX-License-Identifier: Apache-2.0
// Small files: configuration, certificates, tokens.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/base/result.h"

namespace kube {

// Reads the whole file. Blocks. Errors name the path and the reason: kNotFound, kForbidden, kTooLarge (over 16 MiB),
// otherwise kUnavailable.
Result<std::string> ReadSmallFile(const std::string& path);

// The system's message for an errno value, in lower case.
std::string SystemMessage(int error);

// A bearer token without the white space around it. Error kInvalidArgument: it is empty, or contains a space or control
// character, which a header must not. The message never contains the token.
Result<std::string> CleanToken(std::string_view text);

}  // namespace kube

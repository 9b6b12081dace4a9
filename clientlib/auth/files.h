// SPDX-License-Identifier: Apache-2.0
// Small files: configuration, certificates, tokens.
#pragma once

#include <string>
#include <string_view>

#include "clientlib/base/result.h"

namespace kube {

// The whole file. Errors name the path and the reason: kNotFound, kForbidden, kTooLarge (over 16 MiB), else
// kUnavailable. Blocks.
Result<std::string> ReadSmallFile(const std::string& path);

// The system's message for an errno value, in lower case.
std::string SystemMessage(int error);

// A bearer token without the white space around it. kInvalidArgument, without the text: empty, or with a control
// character or space inside, which a header must not contain.
Result<std::string> CleanToken(std::string_view text);

}  // namespace kube

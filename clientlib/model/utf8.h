// SPDX-License-Identifier: Apache-2.0
// Checks and repairs UTF-8, the only encoding that JSON texts may have. Pure functions on values.
#pragma once

#include <string>
#include <string_view>

namespace kube {

// Also false for surrogates, overlong forms and anything above U+10FFFF.
bool IsValidUtf8(std::string_view text);
// Each byte that is not part of a valid character becomes U+FFFD.
std::string RepairUtf8(std::string_view text);

}  // namespace kube

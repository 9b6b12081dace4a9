// SPDX-License-Identifier: Apache-2.0
// Where one character of a UTF-8 text ends. Pure function on values.
#pragma once

#include <cstddef>
#include <string_view>

namespace kube {

// The bytes of the valid character at the start of `text`; 0 if there is none: also for surrogates, overlong forms and
// anything above U+10FFFF. REQUIRES: `text` is not empty.
std::size_t Utf8CharacterSize(std::string_view text);

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
// Which grus this is. version.cc is written at build time, so that a commit compiles that file only.
#pragma once

namespace grus {

extern const char* const kVersion;  // Of CMakeLists.txt, for example "0.1.0".
extern const char* const kCommit;   // "3228e60", "3228e60-dirty" if files had changed since, or "unknown".

}  // namespace grus

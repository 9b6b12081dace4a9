// SPDX-License-Identifier: Apache-2.0
// One line of a watch stream. Pure functions on values.
#pragma once

#include <string_view>

#include "clientlib/base/result.h"

namespace kube {

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError, kUnknown };

struct WatchEvent {
  WatchEventType type = WatchEventType::kUnknown;
  std::string_view object;  // JSON text, within the line it was read from.
};

// Finds type and object without parsing the object. Errors: kDecode. The API server always writes
// {"type":"...","object":{...}}; any other order of the two members is read as well, more slowly.
Result<WatchEvent> ReadWatchEvent(std::string_view line);

}  // namespace kube

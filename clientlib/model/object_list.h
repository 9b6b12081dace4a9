// SPDX-License-Identifier: Apache-2.0
// Lists and events with objects that cannot be read: such an object is told apart by its name, and costs no other one.
//
// Pure functions on values; blocking CPU work only; thread-safe.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/kind.h"

namespace kube {

// An object with nothing but namespace, name, UID and resource version, found without reading the rest of `text`. Null
// if `text` has no name, or is of another kind.
std::shared_ptr<const Object> ReadIdentity(const Kind& kind, std::string_view text);

struct UnreadableObject {
  std::shared_ptr<const Object> identity;
  Error error;
};

struct ObjectsOneByOne {
  DecodedList list;
  std::vector<UnreadableObject> unreadable;
};

// As DecodeObjectList(), but reads each object by itself, under the limits of DecodeObject(). Errors: as there, and
// kDecode if an object that cannot be read has no name: what is missing from the list would then be unknown.
Result<ObjectsOneByOne> DecodeObjectsOneByOne(const Kind& kind, std::string_view text);

}  // namespace kube

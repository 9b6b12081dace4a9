// SPDX-License-Identifier: Apache-2.0
// Lists and the start of watches: selectors, pages, and which resourceVersion means what.
// The server's lock is held throughout.
#pragma once

#include <memory>
#include <string>

#include "clientlib/testing/api_server/api_error.h"
#include "clientlib/testing/api_server/request.h"
#include "clientlib/testing/api_server/storage.h"
#include "clientlib/testing/api_server/watch.h"

namespace kube::testing {

// The body of the answer. With `is_partial` as a PartialObjectMetadataList.
Outcome<std::string> ListText(const Storage& storage, const Table& table, std::string_view ns, const Target& target,
                              bool is_partial = false);
// An object as PartialObjectMetadata.
std::string PartialText(const Json& object);

Outcome<std::shared_ptr<WatchQueue>> StartWatch(Storage& storage, const Clock& clock, Table& table, std::string_view ns,
                                                const Target& target);

// Refuses a `resourceVersion` of a get that is too new.
Check CheckVersion(const Storage& storage, const Target& target);

}  // namespace kube::testing

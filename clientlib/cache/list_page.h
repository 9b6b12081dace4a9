// SPDX-License-Identifier: Apache-2.0
// One page of a list for a cache, which one object that cannot be read must not empty or stop.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/client/client.h"
#include "clientlib/model/object_list.h"

namespace kube {

struct ListPage {
  ObjectList readable;
  std::vector<UnreadableObject> unreadable;
};

// As Client::List(). If an object of the answer cannot be read, asks a second time and reads object by object: it is
// rare enough for a request of its own, and all other callers of List() keep an error rather than a list with gaps.
Result<ListPage> ReadListPage(Client& client, const Kind& kind, const std::string& ns, const ListOptions& options,
                              std::stop_token stop);

}  // namespace kube

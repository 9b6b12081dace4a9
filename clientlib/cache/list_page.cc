// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/list_page.h"

#include <utility>

#include "clientlib/client/resource_path.h"

namespace kube {

Result<ListPage> ReadListPage(Client& client, const Kind& kind, const std::string& ns, const ListOptions& options,
                              std::stop_token stop) {
  Result<ObjectList> list = client.List(kind, ns, options, stop);
  if (list) return ListPage{*std::move(list), {}};
  const ErrorCode code = list.error().code();
  if (code != ErrorCode::kDecode && code != ErrorCode::kTooLarge) return std::move(list).error();
  const Result<std::string> answer = client.GetRaw(ListPath(kind, ns, options), std::move(stop));
  if (!answer) return answer.error();
  Result<ObjectsOneByOne> objects = DecodeObjectsOneByOne(kind, *answer);
  if (!objects) return std::move(objects).error().with("answer of the server");
  DecodedList& read = objects->list;
  return ListPage{{std::move(read.items), std::move(read.resource_version), std::move(read.continue_token)},
                  std::move(objects->unreadable)};
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/list_page.h"

#include <utility>

#include "clientlib/client/resource_path.h"
#include "clientlib/http/url.h"

namespace kube {
namespace {

std::string ListTarget(const Kind& kind, const std::string& ns, const ListOptions& options) {
  QueryBuilder query(CollectionPath(kind, ns));
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) query.Add(name, value);
  };
  add("labelSelector", options.label_selector);
  add("fieldSelector", options.field_selector);
  add("resourceVersion", options.resource_version);
  add("continue", options.continue_token);
  return query.target();
}

}  // namespace

Result<ListPage> ReadListPage(Client& client, const Kind& kind, const std::string& ns, const ListOptions& options,
                              std::stop_token stop) {
  Result<ObjectList> list = client.List(kind, ns, options, stop);
  if (list) return ListPage{*std::move(list), {}};
  const ErrorCode code = list.error().code();
  if (code != ErrorCode::kDecode && code != ErrorCode::kTooLarge) return std::move(list).error();
  const Result<std::string> answer = client.GetRaw(ListTarget(kind, ns, options), std::move(stop));
  if (!answer) return answer.error();
  Result<ObjectsOneByOne> objects = DecodeObjectsOneByOne(kind, *answer);
  if (!objects) return std::move(objects).error().with("answer of the server");
  DecodedList& read = objects->list;
  return ListPage{{std::move(read.items), std::move(read.resource_version), std::move(read.continue_token)},
                  std::move(objects->unreadable)};
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/http_routes.h"

#include <exception>
#include <iterator>

namespace kube {

HttpRoutes::HttpRoutes(std::map<std::string, HttpHandler> handlers)
    : handlers_(std::make_move_iterator(handlers.begin()), std::make_move_iterator(handlers.end())) {}

const HttpHandler* HttpRoutes::Find(std::string_view path) const {
  const auto exact = handlers_.find(path);
  if (exact != handlers_.end()) return &exact->second;
  const HttpHandler* best = nullptr;
  // In the order of the map a prefix comes before what it is a prefix of, so the last one is the longest.
  for (const auto& [prefix, handler] : handlers_) {
    if (prefix.ends_with('/') && path.starts_with(prefix)) best = &handler;
  }
  return best;
}

bool TakesGet(HttpMethods methods) { return methods != HttpMethods::kPost; }
bool TakesPost(HttpMethods methods) { return methods != HttpMethods::kGet; }

std::string_view AllowedMethods(HttpMethods methods) {
  if (!TakesPost(methods)) return "GET, HEAD";
  return TakesGet(methods) ? "GET, HEAD, POST" : "POST";
}

HttpReply AnswerOf(const HttpHandler& handler, const ServedRequest& request) {
  try {
    return handler.function(request);
  } catch (const std::exception& e) {
    return {.status = 500, .body = std::string("exception: ") + e.what() + "\n"};
  }
}

}  // namespace kube

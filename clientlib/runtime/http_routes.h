// SPDX-License-Identifier: Apache-2.0
// Which handler answers a path, and what it answers.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "clientlib/runtime/http_handler.h"

namespace kube {

class HttpRoutes {
 public:
  // By path. One that ends with '/' takes all longer paths, too, unless a longer one of the map takes them.
  explicit HttpRoutes(std::map<std::string, HttpHandler> handlers);

  // Null: none. Compares bytes: nothing is unescaped, no ".." resolved.
  const HttpHandler* Find(std::string_view path) const;

 private:
  std::map<std::string, HttpHandler, std::less<>> handlers_;
};

bool TakesGet(HttpMethods methods);
bool TakesPost(HttpMethods methods);
std::string_view AllowedMethods(HttpMethods methods);  // For the header Allow.

// What the handler answers; 500 for an exception, which is a bug, but not one to end the process for.
HttpReply AnswerOf(const HttpHandler& handler, const ServedRequest& request);

}  // namespace kube

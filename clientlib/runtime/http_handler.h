// SPDX-License-Identifier: Apache-2.0
// What a handler of an HttpServer gets and what it answers.
#pragma once

#include <chrono>
#include <concepts>
#include <functional>
#include <string>
#include <utility>

namespace kube {

struct ServedRequest {
  std::string query{};          // What follows '?', still escaped.
  std::string authorization{};  // The header of that name.
  std::string path{};           // What precedes '?', still escaped.
  bool is_post = false;
  std::string body{};  // Of a POST, whole; of any Content-Type.
};

struct HttpReply {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body{};
  std::chrono::seconds retry_after{};  // 0: not said.
};

enum class HttpMethods { kGet, kPost, kGetAndPost };  // GET includes HEAD, whose answer is sent without its body.

// A function, and the methods that it is called for: 405 answers the others.
struct HttpHandler {
  using Function = std::function<HttpReply(const ServedRequest&)>;

  HttpHandler() = default;
  template <std::convertible_to<Function> F>
  HttpHandler(F called, HttpMethods taken = HttpMethods::kGet)  // NOLINT: implicit on purpose
      : function(std::move(called)), methods(taken) {}

  Function function{};
  HttpMethods methods = HttpMethods::kGet;
};

}  // namespace kube

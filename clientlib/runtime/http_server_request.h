// SPDX-License-Identifier: Apache-2.0
// What the server makes of a request's header, before it reads its body.
#pragma once

#include <optional>
#include <string_view>
#include <variant>

#include "clientlib/runtime/http_routes.h"
#include "clientlib/runtime/http_server.h"
#include "clientlib/runtime/http_server_asio.h"
#include "clientlib/runtime/http_server_body.h"

namespace kube {

using HttpRequestParser = boost::beast::http::request_parser<ServedBody>;

struct IncomingRequest {
  const HttpHandler* handler = nullptr;
  ServedRequest request{};  // Its body is yet to be read.
  bool is_head = false;
  bool keeps_alive = false;
  bool awaits_continue = false;  // The client wants to hear "100 Continue" before it sends its body.
};

// An answer after which the connection is closed, as the request is not read to its end.
struct RefusedRequest {
  boost::beast::http::status status = boost::beast::http::status::bad_request;
  std::string_view allow{};
};

// So that Beast limits no body by itself: a path or method that is not known is to be answered as such.
void StartParser(HttpRequestParser& parser, const HttpServerLimits& limits);

// Of one POST: more than all together may have, it never may.
std::size_t BodyLimit(const HttpServerLimits& limits);

// REQUIRES: the header has been read.
std::variant<IncomingRequest, RefusedRequest> CheckHeader(const HttpRequestParser& parser, const HttpRoutes& routes,
                                                          const HttpServerLimits& limits);

// How a failure to read is answered. nullopt: not at all, the peer has closed or was too slow.
std::optional<boost::beast::http::status> RefusalOf(const boost::beast::error_code& error, bool is_header);

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/http_server_request.h"

#include <algorithm>
#include <string>

#include "clientlib/runtime/http_server_asio.h"

namespace kube {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;
using Header = HttpRequestParser::value_type::header_type;

HttpReply NotFound(const ServedRequest&) { return {.status = 404, .body = "not found\n"}; }

bool HasBody(const HttpRequestParser& parser) { return parser.chunked() || parser.content_length().value_or(0) > 0; }

// Where a body ends must be beyond doubt: a proxy before us that saw another end would take what one client sends for
// the request of another one (RFC 9112, 6.3 and 11.2). Beast has refused Content-Length beside "chunked".
std::optional<http::status> FramingFault(const Header& header, bool is_chunked) {
  if (header.count(http::field::transfer_encoding) > 0) {
    if (header.version() < 11) return http::status::bad_request;
    const bool is_only_chunked = is_chunked && header.count(http::field::transfer_encoding) == 1 &&
                                 beast::iequals(header[http::field::transfer_encoding], "chunked");
    if (!is_only_chunked || header.count(http::field::content_length) > 0) return http::status::not_implemented;
  }
  // The same length twice is one that Beast takes.
  if (header.count(http::field::content_length) > 1 ||
      header[http::field::content_length].find(',') != std::string::npos) {
    return http::status::bad_request;
  }
  return std::nullopt;
}

std::optional<http::status> BodyFault(const HttpRequestParser& parser, const HttpServerLimits& limits) {
  const Header& header = parser.get();
  if (header.count(http::field::expect) > 0 && !beast::iequals(header[http::field::expect], "100-continue")) {
    return http::status::expectation_failed;
  }
  if (!HasBody(parser)) return std::nullopt;
  if (header.count(http::field::content_encoding) > 0) return http::status::unsupported_media_type;
  const std::size_t limit = BodyLimit(limits);
  if (limit == 0 || parser.content_length().value_or(0) > limit) return http::status::payload_too_large;
  return std::nullopt;
}

}  // namespace

void StartParser(HttpRequestParser& parser, const HttpServerLimits& limits) {
  parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  parser.body_limit(boost::none);
}

std::size_t BodyLimit(const HttpServerLimits& limits) { return std::min(limits.body_bytes, limits.bodies_bytes); }

std::variant<IncomingRequest, RefusedRequest> CheckHeader(const HttpRequestParser& parser, const HttpRoutes& routes,
                                                          const HttpServerLimits& limits) {
  static const HttpHandler kNotFound(NotFound);
  const Header& header = parser.get();
  if (header.version() >= 11 && header.count(http::field::host) != 1) {
    return RefusedRequest{http::status::bad_request};  // RFC 9112, 3.2
  }
  if (const auto fault = FramingFault(header, parser.chunked())) return RefusedRequest{*fault};

  const std::string_view target = header.target();
  const std::size_t path_end = std::min(target.find('?'), target.size());
  IncomingRequest out;
  out.request.path = target.substr(0, path_end);
  out.request.query = target.substr(std::min(path_end + 1, target.size()));
  out.request.is_post = header.method() == http::verb::post;
  out.is_head = header.method() == http::verb::head;
  const bool is_get = header.method() == http::verb::get || out.is_head;

  out.handler = routes.Find(out.request.path);
  if (out.handler == nullptr) {
    if (!is_get) return RefusedRequest{http::status::not_found};
    out.handler = &kNotFound;
  }
  const HttpMethods methods = out.handler->methods;
  if (!(is_get && TakesGet(methods)) && !(out.request.is_post && TakesPost(methods))) {
    return RefusedRequest{http::status::method_not_allowed, AllowedMethods(methods)};
  }
  // A body has no meaning in a GET, and unread it would be parsed as the next request.
  if (is_get && HasBody(parser)) return RefusedRequest{http::status::bad_request};
  if (out.request.is_post) {
    if (const auto fault = BodyFault(parser, limits)) return RefusedRequest{*fault};
    out.awaits_continue = header.version() >= 11 && header.count(http::field::expect) > 0 && HasBody(parser);
  }
  out.request.authorization = std::string(header[http::field::authorization]);
  out.keeps_alive = parser.keep_alive();  // Now: what stands behind a chunked body could change it.
  return out;
}

std::optional<http::status> RefusalOf(const beast::error_code& error, bool is_header) {
  if (error == http::error::body_limit) return http::status::payload_too_large;
  if (error == make_error_code(boost::system::errc::not_enough_memory)) return http::status::service_unavailable;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return is_header ? http::status::request_header_fields_too_large : http::status::bad_request;
  }
  if (error == http::error::end_of_stream || error == http::error::partial_message) return std::nullopt;
  const bool is_http_error = error && error.category() == make_error_code(http::error::bad_method).category();
  return is_http_error ? std::optional(http::status::bad_request) : std::nullopt;
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
// What a client of the HTTP server sends on one connection, cut into pieces of several sizes. Rules: however it is cut,
// the same requests are taken, with the same bodies (one that is not, may be refused at once or waited for); a body is
// no longer than its limit, and as long as announced; what bodies take is accounted for, and given back; a GET has
// none; path and query are the target.
#include <algorithm>
#include <optional>
#include <string>

#include "clientlib/runtime/http_server_asio.h"
#include "clientlib/runtime/http_server_request.h"
#include "tests/fuzz/check.h"

namespace {

namespace http = boost::beast::http;

// More than any input: where a header is too long depends on how it is cut, by the length of its first line.
constexpr std::size_t kBuffered = 32UL << 10;

kube::HttpReply Answer(const kube::ServedRequest&) { return {}; }

const kube::HttpRoutes& Routes() {
  static const kube::HttpRoutes routes({{"/get", Answer},
                                        {"/post", {Answer, kube::HttpMethods::kPost}},
                                        {"/under/", {Answer, kube::HttpMethods::kGetAndPost}}});
  return routes;
}

kube::HttpServerLimits Limits() {
  kube::HttpServerLimits limits;
  limits.header_bytes = kBuffered;
  limits.body_bytes = 300;
  limits.bodies_bytes = 400;
  return limits;
}

// The bytes of a connection, of which so many come at once.
class Pieces {
 public:
  Pieces(std::string_view text, std::size_t step) : rest_(text), step_(step) {}

  // As the server reads: until `is_enough` or an error.
  template <typename IsEnough>
  boost::beast::error_code Feed(kube::HttpRequestParser& parser, const IsEnough& is_enough) {
    while (!is_enough()) {
      boost::beast::error_code error;
      std::size_t used = 0;
      if (!pending_.empty()) used = parser.put(boost::asio::buffer(pending_), error);
      pending_.erase(0, used);
      if (error == http::error::need_more || (!error && used == 0 && !is_enough())) {
        if (pending_.size() >= kBuffered) return make_error_code(http::error::buffer_overflow);
        if (rest_.empty()) return make_error_code(http::error::partial_message);
        const std::string_view next = rest_.substr(0, std::min(step_, kBuffered - pending_.size()));
        pending_ += next;
        rest_.remove_prefix(next.size());
      } else if (error) {
        return error;
      }
    }
    return {};
  }

 private:
  std::string_view rest_;
  const std::size_t step_;
  std::string pending_;
};

void CheckAccepted(const kube::IncomingRequest& incoming, const kube::HttpRequestParser& parser) {
  const std::string target(parser.get().target());
  const bool has_query = target.find('?') != std::string::npos;
  fuzz::Require(target == incoming.request.path + (has_query ? "?" : "") + incoming.request.query,
                "path and query are the target");
  fuzz::Require(incoming.request.is_post || parser.is_done(), "a GET has no body");
}

// The next request that is taken. Empty: none; it was refused, or the bytes ended.
std::string Next(Pieces& pieces, kube::BodyBudget& budget) {
  const kube::HttpServerLimits limits = Limits();
  kube::BodyCharge charge(budget);
  kube::HttpRequestParser parser;
  kube::StartParser(parser, limits);
  if (const auto error = pieces.Feed(parser, [&] { return parser.is_header_done(); })) {
    (void)kube::RefusalOf(error, true);
    return {};
  }
  auto checked = kube::CheckHeader(parser, Routes(), limits);
  if (std::holds_alternative<kube::RefusedRequest>(checked)) return {};
  const auto& incoming = std::get<kube::IncomingRequest>(checked);
  CheckAccepted(incoming, parser);
  const std::optional<std::uint64_t> announced =
      parser.content_length() ? std::optional<std::uint64_t>(*parser.content_length()) : std::nullopt;

  auto& body = parser.get().body();
  body.charge = &charge;
  body.limit = kube::BodyLimit(limits);
  parser.body_limit(body.limit);
  parser.eager(true);
  const auto error = pieces.Feed(parser, [&] { return parser.is_done(); });
  fuzz::Require(body.text.size() <= body.limit, "a body is no longer than its limit");
  fuzz::Require(body.text.size() <= budget.used && budget.used <= budget.limit, "bodies are accounted for");
  if (error) return {};
  fuzz::Require(!announced || *announced == body.text.size(), "a body is as long as announced");
  return incoming.request.path + "?" + incoming.request.query + " " + incoming.request.authorization +
         (incoming.keeps_alive ? " keeps " : " ends ") + body.text;
}

std::string Play(std::string_view text, std::size_t step) {
  Pieces pieces(text, step);
  kube::BodyBudget budget{Limits().bodies_bytes, 0};
  std::string out;
  std::string line;
  do {
    line = Next(pieces, budget);
    fuzz::Require(budget.used == 0, "what a body took is given back");
    out += line + '\n';
  } while (!line.empty());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  const std::string whole = Play(text, kBuffered);
  fuzz::Require(Play(text, 1) == whole, "bytes one by one are the same requests");
  fuzz::Require(Play(text, 7) == whole, "pieces are the same requests");
  return 0;
}

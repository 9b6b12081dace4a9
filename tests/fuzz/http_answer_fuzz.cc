// SPDX-License-Identifier: Apache-2.0
// Exchange: the lines of an answer's head and then its body, as curl hands them over. Rules: names are in
// lower case and nothing is surrounded by space; a body is whole or refused, and that of a refused stream is
// cut.
#include <algorithm>
#include <string>

#include "clientlib/http/exchange.h"
#include "tests/fuzz/check.h"
#include "tests/kit/manual_clock.h"

namespace {

constexpr std::size_t kLimit = 1000;

bool IsTrim(std::string_view text) {
  return text.find_first_of(" \t\r\n") != 0 &&
         (text.empty() || std::string_view(" \t\r\n").find(text.back()) == std::string_view::npos);
}

void CheckHead(const kube::HttpResponse& response) {
  for (const auto& [name, value] : response.headers) {
    fuzz::Require(std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }),
                  "names are in lower case");
    fuzz::Require(IsTrim(value), "no space surrounds a value");
  }
}

void Run(kube::Exchange::Kind kind, std::string_view text) {
  const kube::testing::ManualClock clock;
  kube::Exchange exchange(kind, {}, kLimit, clock);
  bool is_body = false;
  while (!is_body && !text.empty()) is_body = exchange.OnHeaderLine(fuzz::Cut(text, '\n'));
  if (!is_body) {
    exchange.OnEnd(kube::Error(kube::ErrorCode::kUnavailable, "no answer"));
    fuzz::Require(!exchange.AwaitWhole(clock.Now(), {}).ok(), "an answer without a head is none");
    return;
  }
  bool is_wanted = true;
  for (std::string_view rest = text; is_wanted && !rest.empty();) {
    const std::string_view chunk = rest.substr(0, 100);
    is_wanted = exchange.OnBody(chunk);
    rest.remove_prefix(chunk.size());
  }
  exchange.OnEnd(std::nullopt);
  if (kind == kube::Exchange::Kind::kWhole) {
    const kube::Result<kube::HttpResponse> whole = exchange.AwaitWhole(clock.Now(), {});
    fuzz::Require(whole.ok() == (text.size() <= kLimit), "a body is whole or refused");
    if (!whole) return;
    CheckHead(*whole);
    fuzz::Require(whole->body == text, "a body is what was sent");
  } else if (const kube::Result<kube::HttpResponse> head = exchange.AwaitHead(clock.Now(), {})) {
    CheckHead(*head);
    fuzz::Require(head->status == 200 || text.starts_with(head->body), "a refused stream's body is cut");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Run(kube::Exchange::Kind::kWhole, fuzz::Text(data, size));
  Run(kube::Exchange::Kind::kStream, fuzz::Text(data, size));
  return 0;
}

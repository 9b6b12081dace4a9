// SPDX-License-Identifier: Apache-2.0
// ParseServerUrl(), escaping and QueryBuilder. Rules: the parts of a URL put together are the same URL; an
// escaped text has only characters that are safe, and is the same when unescaped; a query keeps its names and
// values apart.
#include <algorithm>
#include <string>

#include "clientlib/http/url.h"
#include "tests/fuzz/check.h"

namespace {

std::string Unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      plain += text[i];
      continue;
    }
    plain += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
    i += 2;
  }
  return plain;
}

void CheckEscape(std::string_view text) {
  const std::string escaped = kube::EscapePathSegment(text);
  fuzz::Require(std::all_of(escaped.begin(), escaped.end(),
                            [](char c) {
                              return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                                     std::string_view("-._~%").find(c) != std::string_view::npos;
                            }),
                "an escaped text is safe");
  fuzz::Require(Unescaped(escaped) == text, "an escaped text keeps its meaning");
  fuzz::Require(kube::EscapeQueryValue(text) == escaped, "both escapes are the same");
}

void CheckQuery(std::string_view name, std::string_view value) {
  const std::string target = kube::QueryBuilder("/api").Add(name, value).Add("limit", 500).target();
  std::string_view rest = target;
  fuzz::Require(fuzz::Cut(rest, '?') == "/api", "the path stays");
  fuzz::Require(Unescaped(fuzz::Cut(rest, '=')) == name, "a name stays");
  fuzz::Require(Unescaped(fuzz::Cut(rest, '&')) == value, "a value stays");
  fuzz::Require(rest == "limit=500", "what comes next stays");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::Text(data, size);
  CheckEscape(text);
  if (const kube::Result<kube::ServerUrl> url = kube::ParseServerUrl(text)) {
    const kube::Result<kube::ServerUrl> again =
        kube::ParseServerUrl(url->scheme + "://" + url->host + ":" + url->port + url->path);
    fuzz::Require(again.ok(), "a URL put together is one");
    fuzz::Require(again->scheme == url->scheme && again->host == url->host && again->port == url->port &&
                      again->path == url->path,
                  "a URL put together is the same");
  }
  const std::string_view name = fuzz::Cut(text, '\n');
  CheckQuery(name, text);
  return 0;
}

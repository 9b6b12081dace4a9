// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/url.h"

#include <algorithm>

namespace kube {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsUnreserved(char c) {
  return IsDigit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_' || c == '~';
}

void AppendEscaped(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (const char c : text) {
    if (IsUnreserved(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 0xf];
  }
}

std::string Escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  AppendEscaped(out, text);
  return out;
}

}  // namespace

std::string EscapePathSegment(std::string_view text) { return Escape(text); }

std::string EscapeQueryValue(std::string_view text) { return Escape(text); }

QueryBuilder& QueryBuilder::Add(std::string_view name, std::string_view value) {
  target_ += has_query_ ? '&' : '?';
  has_query_ = true;
  AppendEscaped(target_, name);
  target_ += '=';
  AppendEscaped(target_, value);
  return *this;
}

QueryBuilder& QueryBuilder::Add(std::string_view name, std::int64_t value) { return Add(name, std::to_string(value)); }

Result<ServerUrl> ParseServerUrl(std::string_view url) {
  const auto invalid = [](std::string_view why) {
    // The URL itself may hold a password, so it is not repeated.
    return Error(ErrorCode::kInvalidArgument, "server URL " + std::string(why) + ", want https://host:port");
  };
  ServerUrl server;
  if (url.starts_with("https://")) {
    server.scheme = "https";
  } else if (url.starts_with("http://")) {
    server.scheme = "http";
  } else {
    return invalid("has no http or https scheme");
  }
  std::string_view rest = url.substr(server.scheme.size() + 3);
  const auto is_odd = [](char c) { return c <= ' ' || c == 0x7f || c == '\\'; };
  if (std::any_of(rest.begin(), rest.end(), is_odd)) return invalid("has a space or control character");
  if (rest.find_first_of("?#") != std::string_view::npos) return invalid("has a query or fragment");
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    server.path = rest.substr(slash);
    while (server.path.ends_with('/')) server.path.pop_back();
    rest = rest.substr(0, slash);
  }
  if (rest.find('@') != std::string_view::npos) return invalid("contains a user name");

  const std::size_t host_end = rest.starts_with('[') ? rest.find(']') : std::min(rest.find(':'), rest.size());
  if (host_end == std::string_view::npos) return invalid("has an IPv6 address without its closing bracket");
  const std::size_t host_size = rest.starts_with('[') ? host_end + 1 : host_end;
  server.host = rest.substr(0, host_size);
  if (server.host.empty() || server.host == "[]") return invalid("has no host");
  rest.remove_prefix(host_size);
  if (rest.empty()) {
    server.port = server.scheme == "https" ? "443" : "80";
    return server;
  }
  server.port = rest.substr(1);
  const bool is_number = !server.port.empty() && std::all_of(server.port.begin(), server.port.end(), IsDigit);
  if (rest[0] != ':' || !is_number || server.port.size() > 5 || std::stoi(server.port) > 65535) {
    return invalid("has an invalid port");
  }
  return server;
}

}  // namespace kube

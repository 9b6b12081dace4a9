// SPDX-License-Identifier: Apache-2.0
// Escaping and building of request targets, and the parts of a server's URL.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"

namespace kube {

// All but RFC 3986's unreserved characters as %XX: safe between two slashes, and as a query's name or value.
std::string EscapePathSegment(std::string_view text);
std::string EscapeQueryValue(std::string_view text);

// "?a=1&b=x%2Fy" after the path; the path alone while nothing was added.
//
//   QueryBuilder("/api/v1/pods").Add("limit", 500).Add("labelSelector", "app=x").target()
class QueryBuilder {
 public:
  explicit QueryBuilder(std::string path) : target_(std::move(path)) {}
  QueryBuilder& Add(std::string_view name, std::string_view value);
  QueryBuilder& Add(std::string_view name, const char* value) { return Add(name, std::string_view(value)); }
  QueryBuilder& Add(std::string_view name, std::int64_t value);
  QueryBuilder& Add(std::string_view name, int value) { return Add(name, std::int64_t{value}); }
  QueryBuilder& Add(std::string_view name, bool value) { return Add(name, value ? "true" : "false"); }
  const std::string& target() const& { return target_; }
  std::string target() && { return std::move(target_); }

 private:
  std::string target_;
  bool has_query_ = false;
};

struct ServerUrl {
  std::string scheme;  // "http" or "https".
  std::string host;    // An IPv6 address stands in brackets.
  std::string port;    // The scheme's own if none was given.
  std::string path;    // Without a slash at the end; may be empty.
};

// kInvalidArgument on another scheme, no host, a user, a query or a fragment.
Result<ServerUrl> ParseServerUrl(std::string_view url);

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
// A request as the API server understands it: what it asks of which resource.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/http/transport.h"
#include "clientlib/testing/api_server/api_error.h"

namespace kube::testing {

// A target split at its slashes, without escapes.
struct Target {
  std::vector<std::string> path;                           // "api", "v1", "pods"
  std::vector<std::pair<std::string, std::string>> query;  // In the order given.

  std::string_view Query(std::string_view name) const;  // The first; empty if there is none.
  bool HasQuery(std::string_view name) const;
  bool IsTrue(std::string_view name) const;  // "true", "1"
};
Target ParseTarget(std::string_view target);

// The part of a path that names an object or a collection.
struct ResourcePath {
  std::string group, version, resource, ns, name, subresource;
  bool has_namespace = false;
};
// Nothing if the path is of another form (discovery, /version).
std::optional<ResourcePath> ParseResourcePath(const std::vector<std::string>& path);

// The options of a write.
struct WriteOptions {
  std::string subresource = {};
  bool is_dry_run = false;
  bool is_strict = false;                          // fieldValidation=Strict: unknown fields are errors.
  bool warns = false;                              // fieldValidation=Warn
  std::vector<std::string> duplicate_fields = {};  // Of the body.
};
Outcome<WriteOptions> ParseWriteOptions(const HttpRequest& request, const Target& target);

std::string_view HeaderOf(const HttpRequest& request, std::string_view lower_case_name);
std::string MediaType(const HttpRequest& request);  // Of the content, without parameters.

}  // namespace kube::testing

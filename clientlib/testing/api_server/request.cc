// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/request.h"

#include <algorithm>

#include "clientlib/base/lower_case.h"
#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Unescape(std::string_view text, bool is_query) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 && HexDigit(text[i + 2]) >= 0) {
      out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
      i += 2;
    } else {
      out += is_query && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

bool EqualIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, {}, [](char c) { return LowerCase(c); }, [](char c) { return LowerCase(c); });
}

}  // namespace

std::string_view Target::Query(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return {};
}

bool Target::HasQuery(std::string_view name) const {
  return std::any_of(query.begin(), query.end(), [&](const auto& entry) { return entry.first == name; });
}

bool Target::IsTrue(std::string_view name) const {
  const std::string_view value = Query(name);
  return value == "true" || value == "1" || (value.empty() && HasQuery(name) && name == "watch");
}

Target ParseTarget(std::string_view target) {
  Target out;
  const std::size_t path_end = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(0, path_end);
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end > 0) out.path.push_back(Unescape(path.substr(0, end), false));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  std::string_view query = target.substr(std::min(path_end + 1, target.size()));
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view part = query.substr(0, end);
    const std::size_t equals = std::min(part.find('='), part.size());
    out.query.emplace_back(Unescape(part.substr(0, equals), true),
                           Unescape(part.substr(std::min(equals + 1, part.size())), true));
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return out;
}

std::optional<ResourcePath> ParseResourcePath(const std::vector<std::string>& path) {
  ResourcePath out;
  std::size_t at = 0;
  if (path.size() > 2 && path[0] == "api") {
    out.version = path[1];
    at = 2;
  } else if (path.size() > 3 && path[0] == "apis") {
    out.group = path[1];
    out.version = path[2];
    at = 3;
  } else {
    return std::nullopt;
  }
  // "namespaces/x" and its own subresources name the namespace; all other paths below it name what is in it.
  const std::size_t left = path.size() - at;
  const bool is_in_namespace =
      path[at] == "namespaces" && left >= 3 && !(left == 3 && (path[at + 2] == "status" || path[at + 2] == "finalize"));
  if (is_in_namespace) {
    out.ns = path[at + 1];
    out.has_namespace = true;
    at += 2;
  }
  out.resource = path[at++];
  if (at < path.size()) out.name = path[at++];
  while (at < path.size()) out.subresource += (out.subresource.empty() ? "" : "/") + path[at++];
  return out;
}

Outcome<WriteOptions> ParseWriteOptions(const HttpRequest& request, const Target& target) {
  WriteOptions options;
  const char* const kind = request.method == "POST"    ? "CreateOptions"
                           : request.method == "PUT"   ? "UpdateOptions"
                           : request.method == "PATCH" ? "PatchOptions"
                                                       : "DeleteOptions";
  std::vector<FieldError> errors;
  const std::string_view dry_run = target.Query("dryRun");
  options.is_dry_run = !dry_run.empty();
  if (!dry_run.empty() && dry_run != "All") {
    errors.push_back({"FieldValueNotSupported",
                      Concat({"Unsupported value: [\"", dry_run, "\"]: supported values: \"All\""}), "dryRun"});
  }
  const std::string_view validation = target.Query("fieldValidation");
  options.is_strict = validation == "Strict";
  options.warns = validation.empty() || validation == "Warn";
  if (!validation.empty() && validation != "Strict" && validation != "Warn" && validation != "Ignore") {
    errors.push_back(
        {"FieldValueNotSupported",
         Concat({"Unsupported value: \"", validation}) + R"(": supported values: "", "Ignore", "Strict", "Warn")",
         "fieldValidation"});
  }
  if (target.Query("fieldManager").size() > 128) {
    errors.push_back({"FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"});
  }
  if (request.method == "PATCH" && target.HasQuery("force")) {
    errors.push_back(ForbiddenField("force", "may not be specified for non-apply patch"));
  }
  if (!errors.empty()) return Invalid("meta.k8s.io", kind, "", errors);
  return options;
}

std::string_view HeaderOf(const HttpRequest& request, std::string_view lower_case_name) {
  for (const auto& [name, value] : request.headers) {
    if (EqualIgnoringCase(name, lower_case_name)) return value;
  }
  return {};
}

std::string MediaType(const HttpRequest& request) {
  std::string_view type = HeaderOf(request, "content-type");
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return std::string(type);
}

}  // namespace kube::testing

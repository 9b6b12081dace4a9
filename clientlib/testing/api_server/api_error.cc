// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/api_error.h"

#include "clientlib/client/api_status.h"
#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

std::string Quoted(std::string_view text) { return Concat({"\"", text, "\""}); }

// In the server's order: name, group, kind.
Json Details(std::string_view name, std::string_view group, std::string_view kind) {
  Json details = Json::MakeObject();
  if (!name.empty()) details["name"] = name;
  if (!group.empty()) details["group"] = group;
  if (!kind.empty()) details["kind"] = kind;
  return details;
}

Json Cause(std::string_view reason, std::string_view message, std::string_view field) {
  Json cause = Json::MakeObject({{"reason", reason}, {"message", message}});
  if (!field.empty()) cause["field"] = field;
  return cause;
}

}  // namespace

Json ApiError::ToStatus() const {
  Json status = Json::MakeObject({{"kind", "Status"},
                                  {"apiVersion", "v1"},
                                  {"metadata", Json::MakeObject()},
                                  {"status", "Failure"},
                                  {"message", message}});
  if (!continue_token.empty()) status["metadata"]["continue"] = continue_token;
  if (!reason.empty()) status["reason"] = reason;
  if (!details.is_null()) status["details"] = details;
  status["code"] = code;
  return status;
}

HttpResponse ApiError::ToResponse() const {
  if (!plain_text.empty()) {
    return {code, {{"content-type", "text/plain; charset=utf-8"}, {"x-content-type-options", "nosniff"}}, plain_text};
  }
  HttpResponse response = JsonResponse(code, ToText(ToStatus()));
  if (const Json* const wait = details.Find("retryAfterSeconds")) {
    response.headers.emplace_back("retry-after", ToText(*wait));
  }
  return response;
}

Error ApiError::ToError() const { return ErrorFromResponse(ToResponse(), WallTime()); }

ApiError BadRequest(std::string message) { return {400, "BadRequest", std::move(message)}; }

ApiError PageNotFound() { return {404, "NotFound", "404 page not found", {}, {}, "404 page not found\n"}; }

ApiError UnknownResource() {
  return {404, "NotFound", "the server could not find the requested resource", Json::MakeObject()};
}

ApiError MethodNotAllowed() {
  return {405, "MethodNotAllowed", "the server does not allow this method on the requested resource",
          Json::MakeObject()};
}

ApiError UnsupportedMediaType() {
  return {415, "UnsupportedMediaType", "415: Unsupported Media Type", Json::MakeObject()};
}

ApiError NotFound(const ResourceInfo& info, std::string_view name) {
  return {404, "NotFound", info.Id() + " " + Quoted(name) + " not found", Details(name, info.group, info.plural)};
}

ApiError AlreadyExists(const ResourceInfo& info, std::string_view name) {
  return {409, "AlreadyExists", info.Id() + " " + Quoted(name) + " already exists",
          Details(name, info.group, info.plural)};
}

ApiError Conflict(const ResourceInfo& info, std::string_view name, std::string_view message,
                  std::string_view subresource) {
  const std::string suffix = subresource.empty() ? "" : Concat({"/", subresource});
  std::string text = "Operation cannot be fulfilled on " + info.Id() + suffix + " " + Quoted(name) + ": ";
  return {409, "Conflict", text.append(message), Details(name, info.group, info.plural + suffix)};
}

ApiError ModifiedMeanwhile(const ResourceInfo& info, std::string_view name) {
  return Conflict(info, name,
                  "the object has been modified; please apply your changes to the latest version and try again");
}

ApiError Forbidden(const ResourceInfo& info, std::string_view name, std::string_view message) {
  std::string text = info.Id() + " " + Quoted(name) + " is forbidden: ";
  return {403, "Forbidden", text.append(message), Details(name, info.group, info.plural)};
}

ApiError Invalid(std::string_view group, std::string_view kind, std::string_view name,
                 const std::vector<FieldError>& errors) {
  Json details = Details(name, group, kind);
  Json causes = Json::MakeArray();
  std::string list;
  std::size_t listed = 0;
  std::vector<std::string> seen;  // The message names each once, the causes do not.
  for (const FieldError& error : errors) {
    causes.Append(Cause(error.reason, error.message, error.field));
    std::string text = error.field + ": " + error.message;
    bool is_new = true;
    for (const std::string& other : seen) is_new = is_new && other != text;
    if (!is_new) continue;
    if (listed++ > 0) list += ", ";
    list += text;
    seen.push_back(std::move(text));
  }
  if (!errors.empty()) details["causes"] = std::move(causes);
  std::string message(kind);
  if (!group.empty()) message.append(".").append(group);
  message += Concat({" ", Quoted(name)}) + " is invalid: ";
  message += listed > 1 ? "[" + list + "]" : list;
  return {422, "Invalid", std::move(message), std::move(details)};
}

ApiError Invalid(const ResourceInfo& info, std::string_view name, const std::vector<FieldError>& errors) {
  return Invalid(info.group, info.kind, name, errors);
}

ApiError Expired(std::string message) { return {410, "Expired", std::move(message)}; }

ApiError TooLargeVersion(std::uint64_t wanted, std::uint64_t current) {
  Json details = Json::MakeObject(
      {{"causes", Json::MakeArray({Cause("ResourceVersionTooLarge", "Too large resource version", {})})},
       {"retryAfterSeconds", 1}});
  return {504, "Timeout",
          Concat({"Timeout: Too large resource version: ", std::to_string(wanted)}) +
              ", current: " + std::to_string(current),
          std::move(details)};
}

FieldError InvalidField(std::string field, std::string_view value, std::string_view detail) {
  return {"FieldValueInvalid", Concat({"Invalid value: ", value}) + ": " + std::string(detail), std::move(field)};
}

FieldError RequiredField(std::string field, std::string_view detail) {
  return {"FieldValueRequired", Concat({"Required value", detail.empty() ? "" : ": ", detail}), std::move(field)};
}

FieldError ForbiddenField(std::string field, std::string_view detail) {
  return {"FieldValueForbidden", Concat({"Forbidden: ", detail}), std::move(field)};
}

Json SuccessStatus(int code, Json details) {
  Json status = Json::MakeObject(
      {{"kind", "Status"}, {"apiVersion", "v1"}, {"metadata", Json::MakeObject()}, {"status", "Success"}});
  if (!details.is_null()) status["details"] = std::move(details);
  if (code != 0) status["code"] = code;
  return status;
}

HttpResponse JsonResponse(int code, std::string body) {
  return {code, {{"content-type", "application/json"}}, std::move(body)};
}

}  // namespace kube::testing

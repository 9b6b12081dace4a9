// SPDX-License-Identifier: Apache-2.0
// Error answers of the API server: metav1.Status with its reasons, details and causes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "clientlib/http/transport.h"
#include "clientlib/model/json.h"
#include "clientlib/testing/api_server/resource_info.h"
#include "clientlib/testing/api_server/structural_schema.h"

namespace kube::testing {

struct ApiError {
  int code = 500;
  std::string reason, message;
  Json details = {};                // Null: none.
  std::string continue_token = {};  // Of a list that cannot continue at its old version.
  std::string plain_text = {};      // Instead of a Status: the router's answer.

  Json ToStatus() const;
  HttpResponse ToResponse() const;
  Error ToError() const;  // As a client would see it.
};

// A value or an ApiError. As kube::Result, with what a body needs.
template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : state_(std::move(value)) {}         // NOLINT: implicit on purpose
  Outcome(ApiError error) : state_(std::move(error)) {}  // NOLINT: implicit on purpose
  explicit operator bool() const { return state_.index() == 0; }
  T& operator*() { return std::get<0>(state_); }
  T* operator->() { return &std::get<0>(state_); }
  ApiError& error() { return std::get<1>(state_); }

 private:
  std::variant<T, ApiError> state_;
};

struct Done {};
using Check = Outcome<Done>;

ApiError BadRequest(std::string message);
ApiError PageNotFound();
ApiError UnknownResource();  // A known group and version, but nothing of that name.
ApiError MethodNotAllowed();
ApiError UnsupportedMediaType();
ApiError NotFound(const ResourceInfo& info, std::string_view name);
ApiError AlreadyExists(const ResourceInfo& info, std::string_view name);
// 409; `message` follows "Operation cannot be fulfilled on pods "x": ".
ApiError Conflict(const ResourceInfo& info, std::string_view name, std::string_view message,
                  std::string_view subresource = {});
ApiError ModifiedMeanwhile(const ResourceInfo& info, std::string_view name);
ApiError Forbidden(const ResourceInfo& info, std::string_view name, std::string_view message);
ApiError Invalid(std::string_view group, std::string_view kind, std::string_view name,
                 const std::vector<FieldError>& errors);
ApiError Invalid(const ResourceInfo& info, std::string_view name, const std::vector<FieldError>& errors);
ApiError Expired(std::string message);
ApiError TooLargeVersion(std::uint64_t wanted, std::uint64_t current);

FieldError InvalidField(std::string field, std::string_view value, std::string_view detail);  // `value` as JSON.
FieldError RequiredField(std::string field, std::string_view detail);
FieldError ForbiddenField(std::string field, std::string_view detail);

Json SuccessStatus(int code, Json details = {});  // `code` 0: left out.
HttpResponse JsonResponse(int code, std::string body);

}  // namespace kube::testing

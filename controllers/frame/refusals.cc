// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/refusals.h"

#include <string>
#include <string_view>

namespace grus {

using kube::ErrorCode;

bool IsNotPermitted(const kube::Error& error) {
  // 'User "x" cannot create resource "y"'
  const std::string& text = error.message();
  const std::size_t cannot = text.find("\" cannot ");
  return error.code() == ErrorCode::kForbidden && cannot != std::string::npos &&
         text.find(" resource \"", cannot) != std::string::npos;
}

bool IsOfEndingNamespace(const kube::Error& error) {
  // The API server's words for a create in such a namespace.
  constexpr std::string_view kWords = "because it is being terminated";
  return error.code() == ErrorCode::kForbidden && error.message().find(kWords) != std::string::npos;
}

bool IsFinal(const kube::Error& refusal) {
  const ErrorCode code = refusal.code();
  return code == ErrorCode::kForbidden || code == ErrorCode::kInvalid || code == ErrorCode::kInvalidArgument;
}

bool IsByAdmission(const kube::Error& error) {
  // A webhook that gives no code of its own makes it 400: 'admission webhook "x" denied the request: y'. One that does
  // not answer makes it 500: 'failed calling webhook "x": y'.
  const std::string& text = error.message();
  const bool is_denied =
      text.find("admission webhook \"") != std::string::npos && text.find("\" denied the request") != std::string::npos;
  const bool is_by_webhook = is_denied || text.find("failed calling webhook \"") != std::string::npos;
  const bool is_forbidden =
      error.code() == ErrorCode::kForbidden && !IsNotPermitted(error) && !IsOfEndingNamespace(error);
  return is_forbidden || is_by_webhook;
}

std::string QuotaRefusalOf(const kube::Error& error) {
  const std::string& text = error.message();
  for (const std::string_view start : {"failed quota: ", "exceeded quota: ", "status unknown for quota: "}) {
    const std::size_t at = text.find(start);
    if (error.code() == ErrorCode::kForbidden && at != std::string::npos) return text.substr(at);
  }
  return {};
}

bool IsForWantOfStatement(std::string_view quota_refusal) {
  return quota_refusal.starts_with("failed quota: ") && quota_refusal.find(": must specify ") != std::string_view::npos;
}

}  // namespace grus

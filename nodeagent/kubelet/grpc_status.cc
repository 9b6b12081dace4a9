// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/grpc_status.h"

#include <grpc/support/log.h>

#include <string>

namespace grus {
namespace {

using grpc::StatusCode;
using kube::ErrorCode;

StatusCode CodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalid: return StatusCode::INVALID_ARGUMENT;
    case ErrorCode::kNotFound: return StatusCode::NOT_FOUND;
    case ErrorCode::kAlreadyExists: return StatusCode::ALREADY_EXISTS;
    case ErrorCode::kTimeout:
    case ErrorCode::kUnavailable: return StatusCode::UNAVAILABLE;
    default: return StatusCode::FAILED_PRECONDITION;
  }
}

ErrorCode CodeOf(StatusCode code) {
  switch (code) {
    case StatusCode::UNAVAILABLE:
    case StatusCode::DEADLINE_EXCEEDED: return ErrorCode::kUnavailable;
    case StatusCode::CANCELLED: return ErrorCode::kCancelled;
    case StatusCode::INVALID_ARGUMENT: return ErrorCode::kInvalidArgument;
    case StatusCode::NOT_FOUND: return ErrorCode::kNotFound;
    case StatusCode::ALREADY_EXISTS: return ErrorCode::kAlreadyExists;
    case StatusCode::RESOURCE_EXHAUSTED: return ErrorCode::kTooManyRequests;
    case StatusCode::PERMISSION_DENIED: return ErrorCode::kForbidden;
    default: return ErrorCode::kInternal;
  }
}

}  // namespace

grpc::Status ToGrpc(const kube::Error& error) { return {CodeOf(error.code()), error.message()}; }

kube::Error FromGrpc(const grpc::Status& status, std::string_view context) {
  return kube::Error(CodeOf(status.error_code()), std::string(context) + ": " + status.error_message());
}

void SilenceGrpc() {
  gpr_set_log_function([](gpr_log_func_args*) {});
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Errors on their way through gRPC, and its own log lines, which are not ours.
#pragma once

#include <grpcpp/support/status.h>

#include <string_view>

#include "clientlib/base/error.h"

namespace grus {

grpc::Status ToGrpc(const kube::Error& error);
// REQUIRES: `status` is not OK. kUnavailable: nobody answered in time.
kube::Error FromGrpc(const grpc::Status& status, std::string_view context);

// gRPC writes lines of its own to standard error; what they say comes as an error, too. For the whole process.
void SilenceGrpc();

}  // namespace grus

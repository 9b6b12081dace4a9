// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/served_socket.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Result;

// The kubelet sends the ids of all free devices at once: 8,000 of them are half a megabyte.
constexpr int kLargestMessage = 16 << 20;
// For calls that run when the server ends. In real time: gRPC knows no other.
constexpr std::chrono::seconds kLastCalls(2);

// The kubelet takes any new socket for a plugin's, but those whose names begin with a dot.
std::string MadeAt(const std::string& path) {
  const std::filesystem::path place(path);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return place.parent_path() / ("." + place.filename().string() + "." + std::to_string(now.count() % 1'000'000'000));
}

}  // namespace

ServedSocket::ServedSocket() = default;
ServedSocket::~ServedSocket() { End(); }

kube::Status ServedSocket::Serve(const std::string& path, const std::vector<grpc::Service*>& services) {
  // gRPC removes the file at its address before it listens and when it ends, whoever's that is by then. So it listens
  // at an address that nobody else has, and the file is moved from there.
  path_ = path;
  const std::string made = MadeAt(path);
  if (kube::Status free = CheckSocketPath(path); !free) return free;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + made, grpc::InsecureServerCredentials());
  builder.SetMaxReceiveMessageSize(kLargestMessage);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 1);
  for (grpc::Service* const service : services) builder.RegisterService(service);
  server_ = builder.BuildAndStart();
  if (!server_) {
    return Error(ErrorCode::kUnavailable, "listen at " + made +
                                              ": it cannot be made; can this process write there, and has the path "
                                              "fewer than 108 characters?");
  }
  chmod(made.c_str(), 0600);
  const Result<FileIdentity> published = PublishSocket(made, path);
  if (!published) return published.error();
  identity_ = *published;
  return {};
}

void ServedSocket::Withdraw() {
  if (identity_) RemoveIfSame(path_, *identity_);
}

bool ServedSocket::IsInPlace() const { return IdentityOf(path_) == identity_; }

void ServedSocket::End() {
  if (!server_) return;
  Withdraw();
  server_->Shutdown(std::chrono::system_clock::now() + kLastCalls);
  server_->Wait();
  server_.reset();
}

}  // namespace grus

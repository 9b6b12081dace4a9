// SPDX-License-Identifier: Apache-2.0
// A gRPC server on a unix socket that takes its place without pushing out a live one, and leaves no file behind.
// Thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clientlib/base/result.h"
#include "nodeagent/kubelet/plugin_socket.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace grus {

class ServedSocket {
 public:
  ServedSocket();
  ~ServedSocket();  // As End().
  ServedSocket(const ServedSocket&) = delete;
  ServedSocket& operator=(const ServedSocket&) = delete;

  // Once. All of `services` must outlive it. A socket at `path` that nobody listens at is replaced. kAlreadyExists:
  // another process listens there.
  kube::Status Serve(const std::string& path, const std::vector<grpc::Service*>& services);
  void Withdraw();         // Removes the socket if it is in its place.
  bool IsInPlace() const;  // Its socket is still the one at its path.
  void End();              // Withdraws it, and waits for calls that run.

 private:
  std::string path_;
  std::unique_ptr<grpc::Server> server_;
  std::optional<FileIdentity> identity_;
};

}  // namespace grus

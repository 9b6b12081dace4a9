// SPDX-License-Identifier: Apache-2.0
// The files of the sockets through which the kubelet and plugins find each other: whose each is, and how one takes its
// place without pushing out a live one. Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"

namespace grus {

// Tells a file from one that stood at the same path before, or comes later.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  std::int64_t changed_ns = 0;  // File systems use an inode's number again.
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

std::optional<FileIdentity> IdentityOf(const std::string& path);  // nullopt: there is none.

// "ai.centauruscloud.io/gpu-milli" has "grus-ai_centauruscloud_io_gpu-milli.sock".
std::string SocketNameOf(std::string_view resource);

// Moves the listening socket at `made` to `path`, and says what stands there now. What nobody listens at is replaced.
// kAlreadyExists: another process listens there, or a folder is in the way.
kube::Result<FileIdentity> PublishSocket(const std::string& made, const std::string& path);
// PublishSocket() would fail now.
kube::Status CheckSocketPath(const std::string& path);

// Removes `path` if it is still that file.
void RemoveIfSame(const std::string& path, const FileIdentity& identity);

}  // namespace grus

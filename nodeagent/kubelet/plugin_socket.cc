// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/plugin_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Result;
using kube::Status;

// "process 4711 (nvidia-device-p)", as this process can see it.
std::string NameOfPeer(int connection) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid == 0) return "another process";
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(peer.pid) + "/comm"), name);
  return "process " + std::to_string(peer.pid) + (name.empty() ? "" : " (" + name + ")");
}

// Who listens there; empty: nobody.
std::string ListenerAt(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return "";
  path.copy(address.sun_path, path.size());
  const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection < 0) return "another process";  // Out of files: better too careful.
  std::string listener;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    listener = NameOfPeer(connection);
  } else if (errno == EAGAIN || errno == EPROTOTYPE || errno == EACCES) {
    listener = "another process";
  }
  close(connection);
  return listener;
}

// As PublishSocket(), but the file may be removed.
Status FreePath(const std::string& path, bool is_to_remove) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return {};
  if (S_ISDIR(found.st_mode)) {
    return Error(ErrorCode::kAlreadyExists, path + " is a folder: remove it, the plugin's socket belongs there");
  }
  if (S_ISSOCK(found.st_mode)) {
    if (const std::string listener = ListenerAt(path); !listener.empty()) {
      return Error(ErrorCode::kAlreadyExists,
                   path + " is taken by " + listener + ": run one plugin for this resource on a node");
    }
  }
  if (is_to_remove && unlink(path.c_str()) != 0 && errno != ENOENT) {
    return Error(ErrorCode::kUnavailable, "remove " + path + ": " + std::strerror(errno));
  }
  return {};
}

}  // namespace

std::optional<FileIdentity> IdentityOf(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0) return std::nullopt;
  return FileIdentity{found.st_dev, found.st_ino,
                      std::int64_t{found.st_ctim.tv_sec} * 1'000'000'000 + found.st_ctim.tv_nsec};
}

std::string SocketNameOf(std::string_view resource) {
  std::string name = "grus-" + std::string(resource) + ".sock";
  for (std::size_t i = 0; i + 5 < name.size(); ++i) {
    if (name[i] == '/' || name[i] == '.') name[i] = '_';
  }
  return name;
}

Status CheckSocketPath(const std::string& path) { return FreePath(path, false); }

Result<FileIdentity> PublishSocket(const std::string& made, const std::string& path) {
  if (Status freed = FreePath(path, true); !freed) return std::move(freed).error();
  if (renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) != 0) {
    return Error(ErrorCode::kUnavailable, "move the plugin's socket to " + path + ": " + std::strerror(errno));
  }
  const std::optional<FileIdentity> identity = IdentityOf(path);
  if (!identity) return Error(ErrorCode::kUnavailable, "the plugin's socket " + path + " was removed at once");
  return *identity;
}

void RemoveIfSame(const std::string& path, const FileIdentity& identity) {
  if (IdentityOf(path) == identity) unlink(path.c_str());
}

}  // namespace grus

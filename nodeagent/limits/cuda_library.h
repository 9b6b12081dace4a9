// SPDX-License-Identifier: Apache-2.0
// libgrus-cuda.so on the node, which the kubelet mounts into containers from there.
//
// It has the same name for ever, since the kubelet remembers what it mounted when it gave a part, over restarts of
// the container, of the agent and of the node. A new library takes the place of the old one by rename: containers that
// run keep theirs, and those that start again get the new one, as files of their shares do.
//
// All containers have the same file, so this keeps it open: root in one of them could else take a write lease on it,
// also where it is mounted read-only, and make the programs of all others wait for it. Not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "clientlib/base/result.h"
#include "nodeagent/limits/own_fd.h"

namespace grus {

inline constexpr char kCudaLibraryInContainer[] = "/run/grus/cuda/libgrus-cuda.so";

class CudaLibrary {
 public:
  // `source`: the library in the agent's image; `folder`: of the node, at the same path.
  CudaLibrary(std::string source, std::string folder) : source_(std::move(source)), folder_(std::move(folder)) {}

  // No effect on a file that is as it should be. Errors: kNotFound (there is no `source`), kUnavailable (`folder`
  // cannot be written, or is on a file system from which nothing may be run).
  kube::Status Install();

  std::string library() const { return folder_ + "/libgrus-cuda.so"; }

 private:
  bool IsInstalled(const std::string& content);
  void Keep(OwnFd file);

  const std::string source_, folder_;
  std::vector<OwnFd> kept_;  // The present one last; the others may still be those of containers that run.
};

}  // namespace grus

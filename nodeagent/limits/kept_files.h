// SPDX-License-Identifier: Apache-2.0
// The files of a share that both sides use, kept open for writing from before its container starts: root there can take
// no lease on them then, by which it would keep the agent from writing what it may have, and the agent can cut the
// account whatever mode or owner it has got since. What a container adds to it fills the node's memory.
//
// For one thread at a time.
#pragma once

#include <string>

#include "clientlib/base/result.h"
#include "nodeagent/limits/own_fd.h"

namespace grus {

class KeptFiles {
 public:
  explicit KeptFiles(const std::string& folder);  // Of the share.

  // Whether the account was longer than it is, and is cut. Blocks for as long as a call of the container on that file
  // takes, which may be seconds. Error: it is longer, and cannot be cut.
  kube::Result<bool> CutAccount();

 private:
  const std::string account_path_;
  OwnFd account_;  // Of a share that an agent before has made, it may not be possible to open it.
  const OwnFd limits_;
};

}  // namespace grus

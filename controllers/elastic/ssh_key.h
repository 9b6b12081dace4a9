// SPDX-License-Identifier: Apache-2.0
// The ed25519 key pairs of one job, in the formats that OpenSSH reads.
#pragma once

#include <string>

#include "clientlib/base/result.h"

namespace grus {

struct SshKey {
  std::string private_key;  // "-----BEGIN OPENSSH PRIVATE KEY-----": openssh-key-v1, not encrypted.
  std::string public_key;   // "ssh-ed25519 AAAA... comment"
};

// Uses the operating system's random source. `comment` goes into both keys.
kube::Result<SshKey> MakeSshKey(const std::string& comment);

// Two pairs: what a worker holds is no way into another worker, and the launcher knows its workers from others.
struct JobKeys {
  SshKey login;  // The launcher's; workers have its public half.
  SshKey host;   // The workers'; the launcher has its public half.
};
kube::Result<JobKeys> MakeJobKeys(const std::string& comment);

}  // namespace grus

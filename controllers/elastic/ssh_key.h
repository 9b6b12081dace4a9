// SPDX-License-Identifier: Apache-2.0
// An ed25519 key pair for one job, in the formats that OpenSSH reads.
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

}  // namespace grus

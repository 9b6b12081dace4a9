// SPDX-License-Identifier: Apache-2.0
// ParseExecCredential(). Rules: a credential has a token or a certificate, a token can stand in a header, and
// an error does not depend on secrets: it holds nothing of the text.
#include <algorithm>

#include "clientlib/auth/exec_credential.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kube::Result<kube::ExecCredential> credential =
      kube::ParseExecCredential(fuzz::Text(data, size), "client.authentication.k8s.io/v1");
  if (!credential) {
    fuzz::Require(credential.error().code() == kube::ErrorCode::kDecode, "a bad output is a decoding error");
    const bool is_plain = std::all_of(credential.error().message().begin(), credential.error().message().end(),
                                      [](char c) { return c >= ' ' && c <= '~'; });
    fuzz::Require(is_plain && credential.error().message().size() < 120, "a message is one of ours");
    return 0;
  }
  fuzz::Require(!credential->token.empty() || credential->certificate, "a credential proves something");
  fuzz::Require(std::none_of(credential->token.begin(), credential->token.end(),
                             [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; }),
                "a token can stand in a header");
  return 0;
}

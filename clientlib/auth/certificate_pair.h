// SPDX-License-Identifier: Apache-2.0
// A server's certificate and its key.
#pragma once

#include <string>

#include "clientlib/base/result.h"

namespace kube {

struct CertificatePair {
  std::string cert_pem;  // Its chain, too.
  std::string key_pem;
};

// From files in PEM. Errors name the files and what is wrong with them, and never hold the key.
Result<CertificatePair> ReadCertificatePair(const std::string& cert_file, const std::string& key_file);

// One of its own for `host`, for clients that do not check it. Valid for ten years: it lives no longer than its
// process. Error kInternal: what OpenSSL says.
Result<CertificatePair> MakeSelfSigned(const std::string& host);

}  // namespace kube

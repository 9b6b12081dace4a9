// SPDX-License-Identifier: Apache-2.0
// Throw-away certificates for tests.
#pragma once

#include <openssl/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace kube::testing {

struct CertifiedKey {
  std::string cert_pem;
  std::string key_pem;
};

struct CertificateRequest {
  std::string common_name = "test";
  std::vector<std::string> dns_names = {"localhost"};
  std::vector<std::string> ip_addresses = {"127.0.0.1"};
  std::chrono::seconds valid_from = std::chrono::hours(-1);  // From now.
  std::chrono::seconds valid_for = std::chrono::hours(24);
};

// For a server with this certificate. Clients can resume their sessions.
std::shared_ptr<SSL_CTX> ServerTls(const CertifiedKey& own);

class TestCa {
 public:
  explicit TestCa(const std::string& name = "test CA");
  const std::string& cert_pem() const { return own_.cert_pem; }
  CertifiedKey Issue(const CertificateRequest& request = {}) const;

 private:
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
  CertifiedKey own_;
};

}  // namespace kube::testing

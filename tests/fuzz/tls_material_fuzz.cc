// SPDX-License-Identifier: Apache-2.0
// Base64, and certificates and keys as PEM and as DER. Rules: what is encoded is decoded to the same bytes; a
// text is a certificate for all who ask, or for none.
#include <string>

#include "clientlib/auth/tls_material.h"
#include "clientlib/http/pem_check.h"
#include "tests/fuzz/check.h"

namespace {

std::string Pem(const std::string& label, std::string_view der) {
  std::string pem = "-----BEGIN " + label + "-----\n";
  const std::string base64 = kube::EncodeBase64(der);
  for (std::size_t at = 0; at < base64.size(); at += 64) pem.append(base64, at, 64).append("\n");
  return pem.append("-----END ").append(label).append("-----\n");
}

void CheckTexts(const std::string& certificate, const std::string& key) {
  const bool is_certificate = kube::CheckCaCertificate(certificate).ok();
  const kube::Result<kube::WallTime> expiry = kube::CertificateExpiry(certificate);
  fuzz::Require(!expiry || is_certificate, "only a certificate ends");
  const kube::Status pair = kube::CheckClientCertificate(certificate, key);
  fuzz::Require(!pair || is_certificate, "only a certificate has a key");
  if (certificate.empty()) return;
  fuzz::Require(kube::CheckPem(certificate, "", "").ok() == is_certificate, "both agree on a certificate");
  fuzz::Require(kube::CheckPem("", certificate, key).ok() == pair.ok(), "both agree on a pair");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::Text(data, size);
  const kube::Result<std::string> encoded = kube::DecodeBase64(kube::EncodeBase64(bytes));
  fuzz::Require(encoded.ok() && *encoded == bytes, "what is encoded is decoded to the same");
  if (const kube::Result<std::string> decoded = kube::DecodeBase64(bytes)) {
    const kube::Result<std::string> again = kube::DecodeBase64(kube::EncodeBase64(*decoded));
    fuzz::Require(again.ok() && *again == *decoded, "what is decoded can be encoded");
  }
  CheckTexts(std::string(bytes), std::string(bytes));
  CheckTexts(Pem("CERTIFICATE", bytes), Pem("PRIVATE KEY", bytes));
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/pem_check.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

namespace kube {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Bio Open(const std::string& pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free); }

// Never asks at the terminal: an encrypted key is an error.
int NoPassphrase(char*, int, int, void*) { return -1; }

Certificate FirstCertificate(const std::string& pem) {
  const Bio bio = Open(pem);
  return {PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr), X509_free};
}

Error Invalid(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Status Check(const std::string& ca_pem, const std::string& cert_pem, const std::string& key_pem) {
  if (!ca_pem.empty() && !FirstCertificate(ca_pem)) return Invalid("CA is not a PEM certificate");
  if (cert_pem.empty()) return {};
  const Certificate certificate = FirstCertificate(cert_pem);
  if (!certificate) return Invalid("client certificate is not a PEM certificate");
  const Bio bio = Open(key_pem);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr), EVP_PKEY_free);
  if (!key) return Invalid("client key is not a PEM private key, or is encrypted");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Invalid("client key does not belong to the client certificate");
  }
  return {};
}

}  // namespace

Status CheckPem(const std::string& ca_pem, const std::string& cert_pem, const std::string& key_pem) {
  Status status = Check(ca_pem, cert_pem, key_pem);
  ERR_clear_error();  // Left-overs would surface in curl's messages on this thread.
  return status;
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/certificate_pair.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "clientlib/auth/files.h"
#include "clientlib/auth/tls_material.h"

namespace kube {
namespace {

constexpr long kYear = 365L * 24 * 3600;

template <typename T, void (*kFree)(T*)>
struct Free {
  void operator()(T* p) const { kFree(p); }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION, X509_EXTENSION_free>>;
using Memory = std::unique_ptr<BIO, Free<BIO, BIO_free_all>>;

std::string TextOf(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return {data, static_cast<std::size_t>(size)};
}

bool Fill(X509* certificate, EVP_PKEY* key, const std::string& host) {
  std::int64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) return false;
  X509_NAME* name = X509_get_subject_name(certificate);
  const Extension hosts(X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, ("DNS:" + host).c_str()));
  return hosts && X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ASN1_INTEGER_set_int64(X509_get_serialNumber(certificate), serial & INT64_MAX) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -3600) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), 10 * kYear) != nullptr &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>("grus-manager"),
                                    -1, -1, 0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         X509_add_ext(certificate, hosts.get(), -1) == 1 && X509_sign(certificate, key, EVP_sha256()) > 0;
}

}  // namespace

Result<CertificatePair> MakeSelfSigned(const std::string& host) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  const Memory cert_text(BIO_new(BIO_s_mem())), key_text(BIO_new(BIO_s_mem()));
  if (!key || !certificate || !cert_text || !key_text || !Fill(certificate.get(), key.get(), host) ||
      PEM_write_bio_X509(cert_text.get(), certificate.get()) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
    return Error(ErrorCode::kInternal, std::string("make a certificate for ") + host + ": " + reason);
  }
  return CertificatePair{TextOf(cert_text.get()), TextOf(key_text.get())};
}

Result<CertificatePair> ReadCertificatePair(const std::string& cert_file, const std::string& key_file) {
  Result<std::string> cert = ReadSmallFile(cert_file);
  if (!cert) return std::move(cert).error();
  Result<std::string> key = ReadSmallFile(key_file);
  if (!key) return std::move(key).error();
  if (Status checked = CheckClientCertificate(*cert, *key); !checked) {
    return std::move(checked).error().with(cert_file + ", " + key_file);
  }
  return CertificatePair{*std::move(cert), *std::move(key)};
}

}  // namespace kube

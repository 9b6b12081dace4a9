// SPDX-License-Identifier: Apache-2.0
#include "tests/kit/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <stdexcept>

namespace kube::testing {
namespace {

template <typename T>
T* Checked(T* p) {
  if (p == nullptr) throw std::runtime_error("OpenSSL failed to make a test certificate");
  return p;
}

std::shared_ptr<EVP_PKEY> NewKey() { return {Checked(EVP_EC_gen("P-256")), EVP_PKEY_free}; }

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = Checked(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::shared_ptr<X509> NewCertificate(const CertificateRequest& request, EVP_PKEY* key) {
  std::shared_ptr<X509> certificate(Checked(X509_new()), X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  unsigned char serial[8];
  RAND_bytes(serial, sizeof serial);
  serial[0] &= 0x7f;
  BIGNUM* number = Checked(BN_bin2bn(serial, sizeof serial, nullptr));
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), request.valid_from.count());
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), request.valid_for.count());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(request.common_name.c_str()), -1, -1, 0);
  X509_set_pubkey(certificate.get(), key);
  return certificate;
}

template <typename Write>
std::string ToPem(Write write) {
  BIO* bio = Checked(BIO_new(BIO_s_mem()));
  write(bio);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return pem;
}

CertifiedKey ToPem(X509* certificate, EVP_PKEY* key) {
  return {ToPem([&](BIO* bio) { PEM_write_bio_X509(bio, certificate); }),
          ToPem([&](BIO* bio) { PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr); })};
}

}  // namespace

std::shared_ptr<SSL_CTX> ServerTls(const CertifiedKey& own) {
  const auto memory = [](const std::string& pem) {
    return std::shared_ptr<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  };
  std::shared_ptr<SSL_CTX> tls(Checked(SSL_CTX_new(TLS_server_method())), SSL_CTX_free);
  X509* certificate = Checked(PEM_read_bio_X509(memory(own.cert_pem).get(), nullptr, nullptr, nullptr));
  EVP_PKEY* key = Checked(PEM_read_bio_PrivateKey(memory(own.key_pem).get(), nullptr, nullptr, nullptr));
  SSL_CTX_use_certificate(tls.get(), certificate);
  SSL_CTX_use_PrivateKey(tls.get(), key);
  X509_free(certificate);
  EVP_PKEY_free(key);
  SSL_CTX_set_session_id_context(tls.get(), reinterpret_cast<const unsigned char*>("test"), 4);
  return tls;
}

TestCa::TestCa(const std::string& name) : key_(NewKey()) {
  certificate_ = NewCertificate({.common_name = name}, key_.get());
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  AddExtension(certificate_.get(), certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate_.get(), certificate_.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  own_ = ToPem(certificate_.get(), key_.get());
}

CertifiedKey TestCa::Issue(const CertificateRequest& request) const {
  const std::shared_ptr<EVP_PKEY> key = NewKey();
  const std::shared_ptr<X509> certificate = NewCertificate(request, key.get());
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  std::string names;
  for (const std::string& name : request.dns_names) names += (names.empty() ? "DNS:" : ",DNS:") + name;
  for (const std::string& ip : request.ip_addresses) names += (names.empty() ? "IP:" : ",IP:") + ip;
  if (!names.empty()) AddExtension(certificate.get(), certificate_.get(), NID_subject_alt_name, names);
  X509_sign(certificate.get(), key_.get(), EVP_sha256());
  return ToPem(certificate.get(), key.get());
}

}  // namespace kube::testing

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/tls_material.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>

namespace kube {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// Empties OpenSSL's error queue of this thread: otherwise the next user of OpenSSL would report our errors.
struct ErrorQueueGuard {
  ~ErrorQueueGuard() { ERR_clear_error(); }
};

Error Invalid(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Bio Open(const std::string& pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free); }

int NoPassphrase(char*, int, int, void*) { return -1; }

Certificate FirstCertificate(const std::string& pem) {
  const Bio bio = Open(pem);
  return {PEM_read_bio_X509(bio.get(), nullptr, NoPassphrase, nullptr), X509_free};
}

// The six bits of a base64 letter, or -1.
int Bits(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

}  // namespace

Result<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  unsigned group = 0;
  int letters = 0;
  int padding = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int bits = Bits(c);
    if (bits < 0 || padding > 0) return Invalid("not valid base64");
    group = (group << 6 | static_cast<unsigned>(bits)) & 0xffffff;
    if (++letters % 4 != 0) continue;
    out += static_cast<char>(group >> 16);
    out += static_cast<char>(group >> 8 & 0xff);
    out += static_cast<char>(group & 0xff);
  }
  const int rest = letters % 4;
  if ((letters + padding) % 4 != 0 || padding > 2 || rest == 1 || (rest == 0 && padding > 0)) {
    return Invalid("not valid base64");
  }
  if (rest == 2) out += static_cast<char>(group >> 4 & 0xff);
  if (rest == 3) {
    out += static_cast<char>(group >> 10 & 0xff);
    out += static_cast<char>(group >> 2 & 0xff);
  }
  return out;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string out(4 * ((bytes.size() + 2) / 3), '\0');
  // It also writes a NUL, where the string has its own.
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(bytes.data()),
                  static_cast<int>(bytes.size()));
  return out;
}

Status CheckCaCertificate(const std::string& ca_pem) {
  const ErrorQueueGuard guard;
  if (!FirstCertificate(ca_pem)) return Invalid("no PEM certificate");
  return {};
}

Status CheckClientCertificate(const std::string& cert_pem, const std::string& key_pem) {
  const ErrorQueueGuard guard;
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

Result<WallTime> CertificateExpiry(const std::string& cert_pem) {
  const ErrorQueueGuard guard;
  const Certificate certificate = FirstCertificate(cert_pem);
  if (!certificate) return Invalid("no PEM certificate");
  std::tm parts{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &parts) != 1) {
    return Invalid("certificate has no valid end date");
  }
  // For "never", RFC 5280 has the year 9999, which is too late for nanoseconds in 64 bits.
  using std::chrono::floor, std::chrono::seconds;
  const std::chrono::sys_seconds end{seconds(timegm(&parts))};
  return WallTime(std::clamp(end, floor<seconds>(WallTime::min()) + seconds(1), floor<seconds>(WallTime::max())));
}

}  // namespace kube

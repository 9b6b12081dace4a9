// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/http_server_tls.h"

#include <openssl/x509v3.h>

#include <algorithm>
#include <utility>

#include "clientlib/runtime/http_server_asio.h"

namespace kube {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;

constexpr std::chrono::minutes kAge(1);

// With all its bytes: a NUL inside must not make it equal to a shorter name.
std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

std::vector<std::string> NamesOf(X509* certificate) {
  std::vector<std::string> out;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
    unsigned char* utf8 = nullptr;
    const int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (size < 0) continue;
    out.emplace_back(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
    OPENSSL_free(utf8);
  }
  auto* names = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS) out.push_back(TextOf(name->d.dNSName));
  }
  GENERAL_NAMES_free(names);
  return out;
}

bool HasOneOf(X509* certificate, const std::vector<std::string>& wanted) {
  const std::vector<std::string> names = NamesOf(certificate);
  return std::find_first_of(names.begin(), names.end(), wanted.begin(), wanted.end()) != names.end();
}

// Errors do not contain the key.
Status UseOwn(ssl::context& context, const CertificatePair& own) {
  boost::system::error_code error;
  context.use_certificate_chain(asio::buffer(own.cert_pem), error);
  if (error) return Error(ErrorCode::kInvalidArgument, "not a certificate in PEM: " + error.message());
  context.use_private_key(asio::buffer(own.key_pem), ssl::context::pem, error);
  if (error) return Error(ErrorCode::kInvalidArgument, "not the certificate's key in PEM: " + error.message());
  return {};
}

Status TrustClients(ssl::context& context, const std::string& ca, const std::vector<std::string>& names) {
  boost::system::error_code error;
  context.add_certificate_authority(asio::buffer(ca), error);
  if (error) return Error(ErrorCode::kInvalidArgument, "not certificates of clients' CAs in PEM: " + error.message());
  SSL_CTX* const native = context.native_handle();
  // As in Go, and so as everywhere in Kubernetes: a CA that is trusted need not be a root.
  X509_STORE_set_flags(SSL_CTX_get_cert_store(native), X509_V_FLAG_PARTIAL_CHAIN);
  // A session that is resumed would not be verified again, though the certificate may have expired meanwhile.
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(native, 0);
  context.set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  context.set_verify_callback([names](bool is_verified, ssl::verify_context& verified) {
    X509_STORE_CTX* const chain = verified.native_handle();
    const bool is_own = X509_STORE_CTX_get_error_depth(chain) == 0;
    if (!is_verified || !is_own || names.empty()) return is_verified;
    if (HasOneOf(X509_STORE_CTX_get_current_cert(chain), names)) return true;
    X509_STORE_CTX_set_error(chain, X509_V_ERR_APPLICATION_VERIFICATION);
    return false;
  });
  return {};
}

}  // namespace

HttpServerTls::HttpServerTls(HttpServer::CertificateSource certificates, HttpClientTrust clients)
    : certificates_(std::move(certificates)), clients_(std::move(clients)) {}

Result<std::shared_ptr<ssl::context>> HttpServerTls::ContextOf(const Material& material) const {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  if (Status used = UseOwn(*context, material.own); !used) return std::move(used).error();
  if (!clients_.ca) return context;
  if (Status used = TrustClients(*context, material.client_ca, clients_.names); !used) return std::move(used).error();
  return context;
}

Status HttpServerTls::Adopt(Material material) {
  Result<std::shared_ptr<ssl::context>> made = ContextOf(material);
  if (!made) return std::move(made).error();
  context_ = *std::move(made);
  in_use_ = std::move(material);
  return {};
}

Status HttpServerTls::Refresh(std::chrono::steady_clock::time_point now) {
  if (context_ && now - read_at_ < kAge) return {};
  read_at_ = now;
  Result<CertificatePair> own = certificates_();
  Result<std::string> ca = clients_.ca ? clients_.ca() : Result<std::string>(std::string());
  if (!context_) {
    if (!own) return std::move(own).error();
    if (!ca) return std::move(ca).error().with("certificates of clients' CAs");
    return Adopt({*std::move(own), *std::move(ca)});
  }
  // One after the other: if one of them is bad, the other is renewed nevertheless.
  Status outcome;
  if (!own) {
    outcome = std::move(own).error();
  } else if (own->cert_pem != in_use_.own.cert_pem || own->key_pem != in_use_.own.key_pem) {
    outcome = Adopt({*std::move(own), in_use_.client_ca});
  }
  if (!ca) {
    outcome = FirstFailure(std::move(outcome), std::move(ca).error());
  } else if (*ca != in_use_.client_ca) {
    outcome = FirstFailure(std::move(outcome), Adopt({in_use_.own, *std::move(ca)}));
  }
  return outcome;
}

}  // namespace kube

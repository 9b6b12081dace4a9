// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/certificate_renewal.h"

#include <utility>

#include "clientlib/auth/files.h"
#include "clientlib/auth/tls_material.h"

namespace kube {
namespace {

constexpr Duration kReadInterval = std::chrono::minutes(5);
constexpr Duration kRetryInterval = std::chrono::minutes(1);  // After files that could not be used.

}  // namespace

CertificateRenewal::CertificateRenewal(std::unique_ptr<TokenSource> tokens, const ClientConfig& config,
                                       TransportOptions options, CurlTransport& transport, const Clock& clock,
                                       const Log* log)
    : tokens_(std::move(tokens)),
      ca_file_(config.ca_file),
      cert_file_(config.cert_file),
      key_file_(config.key_file),
      transport_(transport),
      clock_(clock),
      log_(log),
      options_(std::move(options)),
      read_again_(clock.Now() + kReadInterval) {}

Result<std::string> CertificateRenewal::AuthorizationHeader() {
  Result<std::string> header = tokens_->AuthorizationHeader();
  if (!header) return header;

  std::lock_guard lock(mutex_);
  Result<std::optional<ClientCertificate>> plugin = tokens_->PluginCertificate();
  if (!plugin) return std::move(plugin).error();
  if (*plugin && ((*plugin)->cert_pem != options_.cert_pem || (*plugin)->key_pem != options_.key_pem)) {
    TransportOptions fresh = options_;
    fresh.cert_pem = std::move((*plugin)->cert_pem);
    fresh.key_pem = std::move((*plugin)->key_pem);
    // With the old certificate the request would go out as somebody else.
    if (Status used = Use(std::move(fresh), "exec plugin"); !used) return std::move(used).error().with("exec plugin");
  }
  if (clock_.Now() >= read_again_) RenewFromFiles();
  return header;
}

void CertificateRenewal::RenewFromFiles() {
  read_again_ = clock_.Now() + kReadInterval;
  Result<TransportOptions> fresh = ReadFiles();
  const Status used = fresh ? Use(*std::move(fresh), "files") : Status(std::move(fresh).error());
  if (used) return;
  read_again_ = clock_.Now() + kRetryInterval;
  if (log_) log_->Warn("certificates not renewed, the old ones stay in use", {{"error", used.error().message()}});
}

Result<TransportOptions> CertificateRenewal::ReadFiles() const {
  TransportOptions fresh = options_;
  for (const auto& [path, text] : {std::pair{&ca_file_, &fresh.ca_pem}, std::pair{&cert_file_, &fresh.cert_pem},
                                   std::pair{&key_file_, &fresh.key_pem}}) {
    if (path->empty()) continue;
    Result<std::string> content = ReadSmallFile(*path);
    if (!content) return std::move(content).error();
    *text = *std::move(content);
  }
  // Refuse empty files too: the transport would take them for "the system's CAs" or "no client certificate".
  if (!ca_file_.empty()) {
    if (Status checked = CheckCaCertificate(fresh.ca_pem); !checked) return std::move(checked).error().with(ca_file_);
  }
  if (!cert_file_.empty() || !key_file_.empty()) {
    Status checked = CheckClientCertificate(fresh.cert_pem, fresh.key_pem);
    if (!checked) return std::move(checked).error().with(cert_file_.empty() ? key_file_ : cert_file_);
  }
  return fresh;
}

Status CertificateRenewal::Use(TransportOptions fresh, std::string_view source) {
  if (fresh.ca_pem == options_.ca_pem && fresh.cert_pem == options_.cert_pem && fresh.key_pem == options_.key_pem) {
    return {};
  }
  if (Status reloaded = transport_.Reload(fresh); !reloaded) return reloaded;
  options_ = std::move(fresh);
  if (log_) log_->Info("certificates renewed, new connections use them", {{"source", source}});
  return {};
}

}  // namespace kube

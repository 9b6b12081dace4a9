// SPDX-License-Identifier: Apache-2.0
// Reloads certificates that are replaced while the process runs: files of the cluster's CA and of the client, and
// credentials of an exec plugin (rule A3).
//
// Wraps another TokenSource, so that it is called before each request. The files are read again every five minutes.
// When their content has changed, the transport is reloaded: later requests use new connections, while running requests
// and watches end on the old ones. If the files cannot be used (half written, a key of another certificate), this is
// logged, the old certificates stay in use, and the files are read again after one minute. Thread-safe; blocks on the
// files.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "clientlib/auth/token_source.h"
#include "clientlib/base/log.h"
#include "clientlib/http/curl_transport.h"

namespace kube {

class CertificateRenewal final : public TokenSource {
 public:
  // `options` are those that `transport` was made with. `log` may be null. All must outlive this.
  CertificateRenewal(std::unique_ptr<TokenSource> tokens, const ClientConfig& config, TransportOptions options,
                     CurlTransport& transport, const Clock& clock, const Log* log);

  Result<std::string> AuthorizationHeader() override;
  Result<std::optional<ClientCertificate>> PluginCertificate() override { return tokens_->PluginCertificate(); }
  void Refused(TimePoint sent) override { tokens_->Refused(sent); }

 private:
  // REQUIRES of all: mutex_ is held.
  void RenewFromFiles();
  Result<TransportOptions> ReadFiles() const;
  Status Use(TransportOptions fresh, std::string_view source);

  const std::unique_ptr<TokenSource> tokens_;
  const std::string ca_file_, cert_file_, key_file_;  // Empty: not from a file.
  CurlTransport& transport_;
  const Clock& clock_;
  const Log* const log_;

  std::mutex mutex_;  // Guards what follows. Held while files are read, so that one thread reads them for all.
  TransportOptions options_;
  TimePoint read_again_;
};

}  // namespace kube

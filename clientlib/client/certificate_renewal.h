// SPDX-License-Identifier: Apache-2.0
// Certificates that are replaced while the process runs: files of the cluster's CA and of the client, and
// what an exec plugin gives (rule A3).
//
// A TokenSource around another one, so that it is asked before each request. The files are read again every
// five minutes. When what they hold has changed, the transport is reloaded: new connections for all that
// follows, while requests and watches that run end on the old ones. Files that cannot be used (half written,
// a key of another certificate) leave what is there in use, are logged, and looked at again after one minute.
// Thread-safe; blocks on the files.
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
  const std::string ca_file_, cert_file_, key_file_;  // Empty: it does not change.
  CurlTransport& transport_;
  const Clock& clock_;
  const Log* const log_;

  std::mutex mutex_;  // Guards what follows; held while files are read: once for all.
  TransportOptions options_;
  TimePoint read_again_;
};

}  // namespace kube

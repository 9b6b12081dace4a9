// SPDX-License-Identifier: Apache-2.0
// Credentials from a plugin program, as client.authentication.k8s.io describes it.
//
// A caller that asks for a credential runs the plugin, on its own thread, if there is none yet, if the last one expires
// within seconds, or if the server has refused it. Other callers wait for that run. After a run that failed, callers
// get its error for some seconds. Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "clientlib/auth/token_source.h"

namespace kube {

struct ExecCredential {
  std::string token;  // Empty if it is only a certificate.
  std::optional<ClientCertificate> certificate;
  std::optional<WallTime> expires_at;
};

// Parses what a plugin printed. Error kDecode: it is no ExecCredential of `api_version`, or has no credentials; the
// message never contains any of the text.
Result<ExecCredential> ParseExecCredential(std::string_view text, std::string_view api_version);

// The KUBERNETES_EXEC_INFO variable. REQUIRES: config.exec.
std::string ExecInfo(const ClientConfig& config);

class ExecCredentialSource final : public TokenSource {
 public:
  // REQUIRES: config.exec. `clock` must outlive it.
  ExecCredentialSource(const ClientConfig& config, const Clock& clock);

  Result<std::string> AuthorizationHeader() override;
  Result<std::optional<ClientCertificate>> PluginCertificate() override;
  void Refused(TimePoint sent) override;

 private:
  Status Refresh();  // REQUIRES: mutex_ is held.
  Result<ExecCredential> RunPlugin() const;

  const ExecCredentialConfig config_;
  const std::string exec_info_;
  const Clock& clock_;

  std::mutex mutex_;  // Guards all below; locked while the plugin runs, so that it runs once.
  std::optional<ExecCredential> credential_;
  TimePoint obtained_at_ = TimePoint::min();
  std::optional<Error> failure_;
  TimePoint try_again_ = TimePoint::min();
};

}  // namespace kube

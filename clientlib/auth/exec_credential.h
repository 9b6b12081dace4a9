// SPDX-License-Identifier: Apache-2.0
// Credentials from a plugin program, as client.authentication.k8s.io describes it.
//
// The plugin runs on a thread of its own, once at a time: if there is no credential yet, some time before the last one
// expires, or if the server has refused it. Whoever asks meanwhile gets the old credential while it is valid, so that a
// plugin that hangs does not cost the lease; without a valid one, the caller waits for that run, for some seconds at
// most once there has been a credential. After a run that failed, callers without a valid credential get its error for
// some seconds. The plugin is ended with the source. Thread-safe.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

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
  // Half of the lease's renew deadline: there is time for a second try.
  static constexpr std::chrono::milliseconds kLongestWait = std::chrono::seconds(5);

  // REQUIRES: config.exec. `clock` must outlive it. `longest_wait` is real time, like that of the plugin.
  ExecCredentialSource(const ClientConfig& config, const Clock& clock,
                       std::chrono::milliseconds longest_wait = kLongestWait);

  Result<std::string> AuthorizationHeader() override;
  Result<std::optional<ClientCertificate>> PluginCertificate() override;
  void Refused(TimePoint sent) override;

 private:
  Result<ExecCredential> Current();
  Result<ExecCredential> RunPlugin(std::stop_token stop) const;
  // All REQUIRE: mutex_ is held.
  bool IsValidFor(Duration time) const;
  void StartRun();
  void FinishRun(Result<ExecCredential> fresh);

  const ExecCredentialConfig config_;
  const std::string exec_info_;
  const Clock& clock_;
  const std::chrono::milliseconds longest_wait_;

  std::mutex mutex_;  // Guards all below but is not held while the plugin runs.
  std::condition_variable finished_;
  std::optional<ExecCredential> credential_;
  bool has_had_one_ = false, is_running_ = false;
  Duration renew_before_end_{};
  TimePoint obtained_at_ = TimePoint::min();
  std::optional<Error> failure_;
  TimePoint try_again_ = TimePoint::min();
  std::jthread run_;  // Last: it uses the others until it has ended.
};

}  // namespace kube

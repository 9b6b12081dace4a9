// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/token_source.h"

#include <mutex>
#include <utility>

#include "clientlib/auth/exec_credential.h"
#include "clientlib/auth/files.h"
#include "clientlib/auth/tls_material.h"

namespace kube {
namespace {

// As client-go: a minute less ten seconds. The kubelet replaces a token well before it expires.
constexpr std::chrono::seconds kReadInterval(50);
constexpr std::chrono::seconds kRetryInterval(10);  // After a read that failed.

class FixedHeader final : public TokenSource {
 public:
  explicit FixedHeader(std::string header) : header_(std::move(header)) {}
  Result<std::string> AuthorizationHeader() override { return header_; }
  void Refused(TimePoint) override {}

 private:
  const std::string header_;
};

class TokenFile final : public TokenSource {
 public:
  TokenFile(std::string path, const Clock& clock) : path_(std::move(path)), clock_(clock) {}

  Result<std::string> AuthorizationHeader() override {
    std::lock_guard lock(mutex_);
    const TimePoint now = clock_.Now();
    if (now < read_again_) return header_;
    Result<std::string> token = ReadSmallFile(path_);
    if (token) token = CleanToken(*token);
    if (token) {
      header_ = "Bearer " + *token;
      read_at_ = now;
      read_again_ = now + kReadInterval;
    } else if (header_.empty()) {
      return std::move(token).error().with("service account token " + path_);
    } else {
      read_again_ = now + kRetryInterval;
    }
    return header_;
  }

  void Refused(TimePoint sent) override {
    std::lock_guard lock(mutex_);
    if (read_at_ <= sent) read_again_ = TimePoint::min();
  }

 private:
  const std::string path_;
  const Clock& clock_;
  std::mutex mutex_;  // Guards all below; locked while the file is read, so that one thread reads it.
  std::string header_;
  TimePoint read_at_ = TimePoint::min();
  TimePoint read_again_ = TimePoint::min();
};

}  // namespace

std::unique_ptr<TokenSource> MakeTokenSource(const ClientConfig& config, const Clock& clock) {
  if (!config.token_file.empty()) return std::make_unique<TokenFile>(config.token_file, clock);
  if (!config.token.empty()) return std::make_unique<FixedHeader>("Bearer " + config.token);
  if (config.exec && config.cert_pem.empty()) return std::make_unique<ExecCredentialSource>(config, clock);
  if (!config.username.empty()) {
    return std::make_unique<FixedHeader>("Basic " + EncodeBase64(config.username + ":" + config.password));
  }
  return std::make_unique<FixedHeader>("");
}

}  // namespace kube

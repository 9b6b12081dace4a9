// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/exec_credential.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "clientlib/auth/files.h"
#include "clientlib/auth/subprocess.h"
#include "clientlib/auth/tls_material.h"
#include "clientlib/model/json.h"
#include "clientlib/model/time.h"

namespace kube {
namespace {

constexpr std::chrono::seconds kLeeway(10);        // A credential that expires sooner counts as expired.
constexpr std::chrono::seconds kRetryInterval(5);  // After a run that failed.
// A run that hangs is ended and followed by a second one before the old credential ends.
constexpr std::chrono::minutes kRenewBeforeEnd(2);
constexpr std::chrono::seconds kRunLimit(50);
constexpr std::size_t kOutputLimit = 1UL << 20;
constexpr std::string_view kWho = "exec credential plugin";

Error Malformed(std::string message) { return Error(ErrorCode::kDecode, std::move(message)); }

std::string TextAt(const Json& value, std::initializer_list<std::string_view> path) {
  const Json* found = value.At(path);
  const std::string* text = found == nullptr ? nullptr : found->AsString();
  return text == nullptr ? std::string() : *text;
}

}  // namespace

Result<ExecCredential> ParseExecCredential(std::string_view text, std::string_view api_version) {
  Result<Json> parsed = ParseJson(text, {.max_bytes = kOutputLimit, .max_depth = 20});
  // Drop the parser's message: it may quote the text.
  if (!parsed) return Malformed("did not print valid JSON");
  if (TextAt(*parsed, {"kind"}) != "ExecCredential") return Malformed("did not print an ExecCredential");
  if (TextAt(*parsed, {"apiVersion"}) != api_version) {
    return Malformed("printed another apiVersion than that of the kubeconfig, " + std::string(api_version));
  }

  ExecCredential credential;
  const std::string token = TextAt(*parsed, {"status", "token"});
  if (!token.empty()) {
    Result<std::string> clean = CleanToken(token);
    if (!clean) return Malformed(clean.error().message());
    credential.token = *std::move(clean);
  }
  ClientCertificate certificate{TextAt(*parsed, {"status", "clientCertificateData"}),
                                TextAt(*parsed, {"status", "clientKeyData"})};
  if (certificate.cert_pem.empty() != certificate.key_pem.empty()) {
    return Malformed("gave a client certificate without its key, or a key alone");
  }
  if (!certificate.cert_pem.empty()) {
    if (Status status = CheckClientCertificate(certificate.cert_pem, certificate.key_pem); !status) {
      return Malformed(status.error().message());
    }
    credential.certificate = std::move(certificate);
  }
  if (credential.token.empty() && !credential.certificate) return Malformed("gave neither a token nor a certificate");

  const std::string expiry = TextAt(*parsed, {"status", "expirationTimestamp"});
  if (!expiry.empty()) {
    Result<Time> time = ParseTime(expiry);
    if (!time) return Malformed("gave an expirationTimestamp that is not an RFC 3339 time");
    credential.expires_at = time->value;
  }
  return credential;
}

std::string ExecInfo(const ClientConfig& config) {
  assert(config.exec);
  Json spec = Json::MakeObject({{"interactive", false}});
  if (config.exec->provide_cluster_info) {
    Json cluster = Json::MakeObject({{"server", config.server}});
    if (!config.ca_pem.empty()) cluster["certificate-authority-data"] = EncodeBase64(config.ca_pem);
    if (!config.tls_server_name.empty()) cluster["tls-server-name"] = config.tls_server_name;
    if (config.insecure_skip_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!config.proxy_url.empty()) cluster["proxy-url"] = config.proxy_url;
    spec["cluster"] = std::move(cluster);
  }
  return ToText(Json::MakeObject(
      {{"apiVersion", config.exec->api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}}));
}

ExecCredentialSource::ExecCredentialSource(const ClientConfig& config, const Clock& clock,
                                           std::chrono::milliseconds longest_wait)
    : config_(*config.exec), exec_info_(ExecInfo(config)), clock_(clock), longest_wait_(longest_wait) {}

Result<std::string> ExecCredentialSource::AuthorizationHeader() {
  const Result<ExecCredential> credential = Current();
  if (!credential) return credential.error();
  return credential->token.empty() ? std::string() : "Bearer " + credential->token;
}

Result<std::optional<ClientCertificate>> ExecCredentialSource::PluginCertificate() {
  Result<ExecCredential> credential = Current();
  if (!credential) return std::move(credential).error();
  return std::move(credential->certificate);
}

void ExecCredentialSource::Refused(TimePoint sent) {
  std::lock_guard lock(mutex_);
  if (obtained_at_ <= sent) credential_.reset();
}

bool ExecCredentialSource::IsValidFor(Duration time) const {
  return credential_ && (!credential_->expires_at || *credential_->expires_at > clock_.WallNow() + time);
}

Result<ExecCredential> ExecCredentialSource::Current() {
  std::unique_lock lock(mutex_);
  if (!IsValidFor(renew_before_end_) && !is_running_ && clock_.Now() >= try_again_) StartRun();
  if (IsValidFor(kLeeway)) return *credential_;
  // Before the first credential there is no lease to lose: the plugin may take its time.
  const auto wait = has_had_one_ ? longest_wait_ : kRunLimit + longest_wait_;
  const bool has_finished = finished_.wait_for(lock, wait, [this] { return !is_running_; });
  // What a plugin has just given counts even if it expires soon.
  if (credential_ && (IsValidFor({}) || (has_finished && !failure_))) return *credential_;
  if (!has_finished) return Error(ErrorCode::kTimeout, "still runs").with(config_.command).with(kWho);
  return failure_ ? *failure_ : Error(ErrorCode::kUnavailable, "its credential was refused").with(kWho);
}

void ExecCredentialSource::StartRun() {
  is_running_ = true;
  if (run_.joinable()) run_.join();  // It has finished, and takes no lock any more.
  run_ = std::jthread([this](std::stop_token stop) {
    Result<ExecCredential> fresh = RunPlugin(std::move(stop));
    {
      std::lock_guard lock(mutex_);
      FinishRun(std::move(fresh));
    }
    finished_.notify_all();
  });
}

void ExecCredentialSource::FinishRun(Result<ExecCredential> fresh) {
  is_running_ = false;
  if (!fresh) {
    failure_ = std::move(fresh).error().with(kWho);
    try_again_ = clock_.Now() + kRetryInterval;
    return;
  }
  failure_.reset();
  credential_ = *std::move(fresh);
  has_had_one_ = true;
  obtained_at_ = clock_.Now();
  if (!credential_->expires_at) return;
  const Duration life = *credential_->expires_at - clock_.WallNow();
  renew_before_end_ = std::max<Duration>(kLeeway, std::min<Duration>(kRenewBeforeEnd, life / 4));
}

Result<ExecCredential> ExecCredentialSource::RunPlugin(std::stop_token stop) const {
  if (config_.interactive_mode == "Always") {
    return Error(ErrorCode::kInvalidArgument,
                 config_.command + " needs a terminal (interactiveMode Always), which this process does not have");
  }
  ProgramCall call{.program = config_.command,
                   .args = config_.args,
                   .env = config_.env,
                   .time_limit = kRunLimit,
                   .output_limit = kOutputLimit,
                   .stop = std::move(stop)};
  call.env.emplace_back("KUBERNETES_EXEC_INFO", exec_info_);
  Result<std::string> output = RunProgram(call);
  if (!output) {
    const bool has_hint = output.error().code() == ErrorCode::kNotFound && !config_.install_hint.empty();
    if (!has_hint) return std::move(output).error();
    return Error(ErrorCode::kNotFound, output.error().message() + "; " + config_.install_hint);
  }
  Result<ExecCredential> credential = ParseExecCredential(*output, config_.api_version);
  if (!credential) return std::move(credential).error().with(config_.command);
  return credential;
}

}  // namespace kube

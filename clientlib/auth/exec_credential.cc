// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/exec_credential.h"

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
constexpr std::size_t kOutputLimit = 1UL << 20;

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

ExecCredentialSource::ExecCredentialSource(const ClientConfig& config, const Clock& clock)
    : config_(*config.exec), exec_info_(ExecInfo(config)), clock_(clock) {}

Result<std::string> ExecCredentialSource::AuthorizationHeader() {
  std::lock_guard lock(mutex_);
  if (Status status = Refresh(); !status) return std::move(status).error();
  return credential_->token.empty() ? std::string() : "Bearer " + credential_->token;
}

Result<std::optional<ClientCertificate>> ExecCredentialSource::PluginCertificate() {
  std::lock_guard lock(mutex_);
  if (Status status = Refresh(); !status) return std::move(status).error();
  return credential_->certificate;
}

void ExecCredentialSource::Refused(TimePoint sent) {
  std::lock_guard lock(mutex_);
  if (obtained_at_ <= sent) credential_.reset();
}

Status ExecCredentialSource::Refresh() {
  if (credential_ && (!credential_->expires_at || *credential_->expires_at > clock_.WallNow() + kLeeway)) return {};
  if (failure_ && clock_.Now() < try_again_) return *failure_;
  Result<ExecCredential> fresh = RunPlugin();
  if (!fresh) {
    failure_ = std::move(fresh).error().with("exec credential plugin");
    try_again_ = clock_.Now() + kRetryInterval;
    return *failure_;
  }
  failure_.reset();
  credential_ = *std::move(fresh);
  obtained_at_ = clock_.Now();
  return {};
}

Result<ExecCredential> ExecCredentialSource::RunPlugin() const {
  if (config_.interactive_mode == "Always") {
    return Error(ErrorCode::kInvalidArgument,
                 config_.command + " needs a terminal (interactiveMode Always), which this process does not have");
  }
  ProgramCall call{.program = config_.command, .args = config_.args, .env = config_.env, .output_limit = kOutputLimit};
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

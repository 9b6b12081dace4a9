// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/metrics_access.h"

#include <utility>

#include "clientlib/auth/certificate_pair.h"

namespace grus {
namespace {

using kube::CertificatePair;
using kube::ErrorCode;
using kube::HttpReply;
using kube::HttpServer;
using kube::Result;

constexpr char kPath[] = "/metrics";

int HttpStatusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnauthorized: return 401;
    case ErrorCode::kForbidden: return 403;
    case ErrorCode::kTooManyRequests: return 429;
    default: return 503;
  }
}

}  // namespace

MetricsAccess::MetricsAccess(kube::Connection& connection, const Options& options, std::string host,
                             const kube::Clock& clock, const kube::Log& log)
    : cert_file_(options.metrics_cert_file), key_file_(options.metrics_key_file), host_(std::move(host)), log_(log) {
  if (options.metrics_secure) reviewer_.emplace(*connection.review_client, clock);
}

std::optional<HttpReply> MetricsAccess::Refusal(const kube::ServedRequest& request) {
  if (!reviewer_) return std::nullopt;
  const kube::Status may = reviewer_->MayGet(request.authorization, kPath);
  if (may) return std::nullopt;
  return HttpReply{.status = HttpStatusOf(may.error().code()), .body = may.error().message() + "\n"};
}

HttpServer::CertificateSource MetricsAccess::Certificates() {
  if (!reviewer_) return {};
  if (cert_file_.empty()) {
    return [own = kube::MakeSelfSigned(host_)]() -> Result<CertificatePair> { return own; };
  }
  return [this]() -> Result<CertificatePair> {
    Result<CertificatePair> read = kube::ReadCertificatePair(cert_file_, key_file_);
    if (!read) log_.Warn("the metrics' certificate cannot be read", {{"error", read.error().message()}});
    return read;
  };
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/trial/prometheus.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "clientlib/http/curl_transport.h"
#include "clientlib/http/url.h"
#include "clientlib/model/json.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Json;
using kube::Result;

constexpr std::size_t kLongestError = 300;
constexpr kube::JsonLimits kLimits{.max_bytes = Prometheus::kMaxAnswer, .max_depth = 20, .max_values = 100'000};

std::optional<double> NumberOf(const Json& pair) {
  const Json::Array* list = pair.AsArray();
  const std::string* text = list != nullptr && list->size() == 2 ? (*list)[1].AsString() : nullptr;
  if (text == nullptr) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::string OverWorkers(const std::string& aggregate, const std::string& metric, const std::string& ns,
                        const std::string& job, std::int64_t seconds) {
  const auto series = [&](const std::string& prefix) {
    return aggregate + "_over_time(" + metric + "{" + prefix + "namespace=\"" + ns + "\"," + prefix + "pod=~\"" + job +
           "(-workers)?(-[0-9]+)?\"}[" + std::to_string(std::max<std::int64_t>(1, seconds)) + "s])";
  };
  return aggregate + "(" + series("") + " or " + series("exported_") + ")";
}

std::string NameOf(const kube::ServerUrl& url) { return url.scheme + "://" + url.host + ":" + url.port; }

Result<std::shared_ptr<kube::Transport>> ConnectByCurl(const std::string& server, const kube::Clock& clock) {
  kube::TransportOptions options;
  options.server = server;
  options.body_limit = Prometheus::kMaxAnswer;
  options.connect_timeout = Prometheus::kTimeout;
  auto made = kube::CurlTransport::Create(std::move(options), clock);
  if (!made) return std::move(made).error();
  return std::shared_ptr<kube::Transport>(*std::move(made));
}

}  // namespace

std::string ExpandQuery(std::string query, const std::string& ns, const std::string& job) {
  for (const auto& [name, value] : {std::pair{std::string("$NAMESPACE"), ns}, std::pair{std::string("$JOB"), job}}) {
    for (std::size_t at = query.find(name); at != std::string::npos; at = query.find(name, at + value.size())) {
      query.replace(at, name.size(), value);
    }
  }
  return query;
}

std::string PeakMemoryQuery(const std::string& ns, const std::string& job, std::int64_t seconds) {
  return OverWorkers("max", "DCGM_FI_DEV_FB_USED", ns, job, seconds);
}

std::string UtilizationQuery(const std::string& ns, const std::string& job, std::int64_t seconds) {
  return OverWorkers("avg", "DCGM_FI_DEV_GPU_UTIL", ns, job, seconds);
}

Result<std::optional<double>> ReadPrometheusAnswer(const std::string& body) {
  const Result<Json> json = kube::ParseJson(body, kLimits);
  if (!json) return Error(json.error()).with("the answer is not from Prometheus");
  const Json* status = json->Find("status");
  if (status == nullptr || status->AsString() == nullptr) {
    return Error(ErrorCode::kDecode, "the answer is not from Prometheus: it has no status");
  }
  if (*status->AsString() != "success") {
    const Json* said = json->Find("error");
    const std::string text = said != nullptr && said->AsString() != nullptr ? *said->AsString() : "no reason is given";
    return Error(ErrorCode::kInvalidArgument, "Prometheus says: " + text.substr(0, kLongestError));
  }
  const Json* type = json->At({"data", "resultType"});
  const Json* result = json->At({"data", "result"});
  if (type == nullptr || type->AsString() == nullptr || result == nullptr || result->AsArray() == nullptr) {
    return Error(ErrorCode::kDecode, "the answer is not from Prometheus: it has no result");
  }
  if (*type->AsString() == "scalar") return NumberOf(*result);
  if (*type->AsString() != "vector") {
    return Error(ErrorCode::kInvalidArgument,
                 "the query returns a " + type->AsString()->substr(0, 20) + ", not one number");
  }
  const Json::Array& series = *result->AsArray();
  if (series.empty()) return std::optional<double>();
  if (series.size() > 1) {
    return Error(ErrorCode::kInvalidArgument, "the query returns " + std::to_string(series.size()) +
                                                  " series; wrap it in an aggregation such as sum() or max()");
  }
  const Json* value = series.front().Find("value");
  return value != nullptr ? NumberOf(*value) : std::optional<double>();
}

Prometheus::Prometheus(Connect connect, const std::vector<std::string>& servers) : connect_(std::move(connect)) {
  for (const std::string& server : servers) {
    if (const auto parts = kube::ParseServerUrl(server)) allowed_.insert(NameOf(*parts));
  }
}

Prometheus::Prometheus(const kube::Clock& clock, const std::vector<std::string>& servers)
    : Prometheus([&clock](const std::string& server) { return ConnectByCurl(server, clock); }, servers) {}

Result<std::shared_ptr<kube::Transport>> Prometheus::ServerOf(const std::string& server) {
  std::shared_ptr<kube::Transport> dropped;  // Its threads are joined without the lock.
  std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(servers_.begin(), servers_.end(), [&](const auto& one) { return one.first == server; });
  if (found != servers_.end()) {
    servers_.splice(servers_.begin(), servers_, found);
    return servers_.front().second;
  }
  auto made = connect_(server);
  if (!made) return std::move(made).error();
  servers_.emplace_front(server, *std::move(made));
  if (servers_.size() > kMostServers) {
    dropped = std::move(servers_.back().second);
    servers_.pop_back();
  }
  return servers_.front().second;
}

Result<std::optional<double>> Prometheus::Ask(const std::string& url, const std::string& query, std::stop_token stop) {
  const std::string where = "ask Prometheus at " + url;
  const Result<kube::ServerUrl> parts = kube::ParseServerUrl(url);
  if (!parts) return Error(parts.error()).with(where);
  const std::string name = NameOf(*parts);
  if (!allowed_.contains(name)) {
    return Error(
        ErrorCode::kForbidden,
        name + " is none of the servers that grus may ask; an administrator lists them (--prometheus-servers)");
  }
  const auto server = ServerOf(name);
  if (!server) return Error(server.error()).with(where);
  kube::HttpRequest request;
  request.target = kube::QueryBuilder(parts->path + "/api/v1/query").Add("query", query).target();
  request.timeout = kTimeout;
  const Result<kube::HttpResponse> answer = (*server)->Send(request, std::move(stop));
  if (!answer) return Error(answer.error()).with(where);
  // 400 and 422 come with an error message about the query.
  if (answer->status != 200 && answer->status != 400 && answer->status != 422) {
    return Error(ErrorCode::kUnavailable, "it answered with status " + std::to_string(answer->status)).with(where);
  }
  Result<std::optional<double>> value = ReadPrometheusAnswer(answer->body);
  if (!value) return std::move(value).error().with(where);
  return value;
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/prometheus/prometheus.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "clientlib/http/curl_transport.h"
#include "clientlib/http/url.h"

namespace grus {
namespace {

using kube::Error;
using kube::ErrorCode;
using kube::Result;

std::string NameOf(const kube::ServerUrl& url) { return url.scheme + "://" + url.host + ":" + url.port; }

Result<std::shared_ptr<kube::Transport>> ConnectByCurl(const std::string& server, const kube::Clock& clock) {
  kube::TransportOptions options;
  options.server = server;
  options.connect_timeout = Prometheus::kTimeout;
  auto made = kube::CurlTransport::Create(std::move(options), clock);
  if (!made) return std::move(made).error();
  return std::shared_ptr<kube::Transport>(*std::move(made));
}

// The body of an answer that was read whole.
ByteSource Once(std::string body) {
  return [body = std::move(body)]() mutable -> Result<std::string> { return std::exchange(body, {}); };
}

}  // namespace

Prometheus::Prometheus(Connect connect, const kube::Clock& clock, const std::vector<std::string>& servers)
    : connect_(connect ? std::move(connect)
                       : [&clock](const std::string& server) { return ConnectByCurl(server, clock); }),
      clock_(clock) {
  for (const std::string& server : servers) {
    if (const auto parts = kube::ParseServerUrl(server)) allowed_.insert(NameOf(*parts));
  }
}

Prometheus::Prometheus(const kube::Clock& clock, const std::vector<std::string>& servers)
    : Prometheus(nullptr, clock, servers) {}

Result<std::optional<double>> Prometheus::Ask(const std::string& url, const std::string& query, std::stop_token stop) {
  std::optional<double> number;
  int series = 0;
  const auto take = [&](const QuerySample& sample) {
    ++series;
    if (!std::isnan(sample.value)) number = sample.value;
  };
  if (kube::Status done =
          Query(url, {.text = query, .limits = {.bytes = kMaxAnswer}, .patience = kTimeout}, take, std::move(stop));
      !done) {
    return std::move(done).error();
  }
  if (series > 1) {
    return Error(ErrorCode::kInvalidArgument, "the query returns " + std::to_string(series) +
                                                  " series; wrap it in an aggregation such as sum() or max()")
        .with("ask Prometheus at " + url);
  }
  return number;
}

kube::Status Prometheus::AskAll(const std::string& url, const std::string& query, const OnSample& on_sample,
                                std::stop_token stop) {
  return Query(url, {.text = query}, on_sample, std::move(stop));
}

kube::Status Prometheus::AskRange(const std::string& url, const std::string& query, TimeRange range,
                                  const OnSample& on_sample, std::stop_token stop) {
  return Query(url, {.text = query, .range = range}, on_sample, std::move(stop));
}

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

kube::HttpRequest Prometheus::RequestFor(const std::string& path, const Question& question) {
  kube::HttpRequest request;
  request.timeout = question.patience;
  if (!question.range) {
    request.target = kube::QueryBuilder(path + "/api/v1/query").Add("query", question.text).target();
    return request;
  }
  // It names all pods of a job: as a form, it is not bound to what a URL may hold.
  request.method = "POST";
  request.target = path + "/api/v1/query_range";
  request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
  kube::QueryBuilder form("");
  form.Add("query", question.text).Add("start", question.range->start).Add("end", question.range->end);
  request.body = form.Add("step", question.range->step).target().substr(1);
  return request;
}

kube::Status Prometheus::Query(const std::string& url, const Question& question, const OnSample& on_sample,
                               std::stop_token stop) {
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
  const kube::HttpRequest request = RequestFor(parts->path, question);
  const kube::TimePoint until = clock_.Now() + question.patience;
  Result<kube::StreamResponse> answer = (*server)->Open(request, stop);
  if (!answer) return std::move(answer).error().with(where);
  ByteSource body;
  if (answer->head.status == 200) {
    body = [&] { return answer->stream->Read(until, stop); };
  } else if (answer->head.status == 400 || answer->head.status == 422) {  // With an error message about the query.
    body = Once(std::move(answer->head.body));
  } else {
    return Error(ErrorCode::kUnavailable, "it answered with status " + std::to_string(answer->head.status)).with(where);
  }
  const AnswerKind kind = question.range ? AnswerKind::kRange : AnswerKind::kNow;
  kube::Status read = ReadAnswer(body, question.limits, on_sample, kind);
  if (!read) return std::move(read).error().with(where);
  return {};
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/curl_transport.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "clientlib/http/curl_pool.h"
#include "clientlib/http/pem_check.h"
#include "clientlib/http/url.h"

namespace kube {
namespace {

// Against a server without HTTP/2 each running exchange needs a connection of its own.
constexpr int kMinHttp1Requests = 8;
constexpr int kMaxHttp1Watches = 1024;
constexpr Duration kWatchGather = std::chrono::milliseconds(20);
constexpr Duration kRequestGather = std::chrono::milliseconds(2);

Error Invalid(std::string message) { return Error(ErrorCode::kInvalidArgument, std::move(message)); }

Status CheckOptions(const TransportOptions& options) {
  Result<ServerUrl> server = ParseServerUrl(options.server);
  if (!server) return std::move(server).error();
  if (options.server.ends_with('/')) return Invalid("server URL ends with a slash");
  if (options.cert_pem.empty() != options.key_pem.empty()) {
    return Invalid("client certificate and key must be given together");
  }
  if (options.insecure_skip_verify && !options.ca_pem.empty()) {
    return Invalid("a CA is given, but insecure_skip_verify is set; remove one");
  }
  if (options.watch_connections < 1 || options.request_connections < 1 || options.lease_connections < 1) {
    return Invalid("each pool needs at least one connection");
  }
  if (options.connect_timeout <= Duration::zero()) return Invalid("connect timeout must be positive");
  return CheckPem(options.ca_pem, options.cert_pem, options.key_pem);
}

bool HasControlCharacter(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\t') return true;
  }
  return false;
}

// User names and other outside text get into headers and targets: none may start a second header or request.
Status CheckRequest(const HttpRequest& request) {
  if (!request.target.starts_with('/') || request.target.find(' ') != std::string::npos ||
      HasControlCharacter(request.target)) {
    return Invalid("request target is not an escaped path");
  }
  if (request.method.empty() || HasControlCharacter(request.method)) return Invalid("request has no method");
  for (const auto& [name, value] : request.headers) {
    if (name.empty() || HasControlCharacter(name) || HasControlCharacter(value)) {
      return Invalid("request header " + (HasControlCharacter(name) ? std::string("name") : name) +
                     " is empty or contains a control character");
    }
  }
  return {};
}

TimePoint DeadlineAfter(TimePoint now, Duration timeout) {
  return timeout > TimePoint::max() - now ? TimePoint::max() : now + timeout;
}

// Holds the pool by shared_ptr: a stream may outlive the transport, which has then closed the pool.
class CurlStream final : public ByteStream {
 public:
  CurlStream(std::shared_ptr<CurlPool> pool, std::shared_ptr<Exchange> exchange)
      : pool_(std::move(pool)), exchange_(std::move(exchange)) {}
  ~CurlStream() override {
    if (!exchange_->has_ended()) pool_->Abandon(std::move(exchange_));
  }
  Result<std::string> Read(TimePoint until, std::stop_token stop) override {
    return exchange_->AwaitChunk(until, std::move(stop));
  }

 private:
  std::shared_ptr<CurlPool> pool_;
  std::shared_ptr<Exchange> exchange_;
};

}  // namespace

struct CurlTransport::Impl {
  using Pools = std::array<std::shared_ptr<CurlPool>, 3>;  // By HttpPool.
  struct Started {
    std::shared_ptr<CurlPool> pool;
    std::shared_ptr<Exchange> exchange;
    TimePoint deadline;
  };

  explicit Impl(const Clock& c) : clock(c) {}
  Pools MakePools(std::shared_ptr<const TransportOptions> options);
  Result<Started> Start(Exchange::Kind kind, const HttpRequest& request);

  const Clock& clock;
  std::atomic<std::int64_t> connections_opened{0};
  std::mutex mutex;  // Guards all below.
  std::shared_ptr<const TransportOptions> options;
  Pools pools;
  std::vector<std::shared_ptr<CurlPool>> draining;
};

CurlTransport::Impl::Pools CurlTransport::Impl::MakePools(std::shared_ptr<const TransportOptions> from) {
  const auto make = [&](const char* name, int http2, int http1, Duration gather = {}) {
    return std::make_shared<CurlPool>(from, PoolOptions{name, http2, http1, gather}, connections_opened);
  };
  return {
      make("http-request", from->request_connections, std::max(from->request_connections, kMinHttp1Requests),
           kRequestGather),
      make("http-watch", from->watch_connections, std::max(from->watch_connections, kMaxHttp1Watches), kWatchGather),
      make("http-lease", from->lease_connections, std::max(from->lease_connections, 2))};
}

Result<CurlTransport::Impl::Started> CurlTransport::Impl::Start(Exchange::Kind kind, const HttpRequest& request) {
  if (Status status = CheckRequest(request); !status) return std::move(status).error();
  Started started;
  started.deadline = DeadlineAfter(clock.Now(), request.timeout);
  while (true) {
    {
      std::lock_guard lock(mutex);
      started.pool = pools[static_cast<std::size_t>(request.pool)];
      if (!started.exchange) {
        const std::size_t limit = kind == Exchange::Kind::kWhole ? options->body_limit : options->stream_buffer_limit;
        started.exchange = std::make_shared<Exchange>(kind, request, limit, clock);
      }
    }
    // Refused only if Reload() has replaced the pools since: the next turn finds the new ones.
    if (started.pool->Start(started.exchange)) return started;
  }
}

Result<std::unique_ptr<CurlTransport>> CurlTransport::Create(TransportOptions options, const Clock& clock) {
  // Once per process, thread-safe; curl counts further calls.
  static const CURLcode kInitialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (kInitialised != CURLE_OK) return Error(ErrorCode::kInternal, "libcurl failed to start");
  if (Status status = CheckOptions(options); !status) return std::move(status).error();
  auto impl = std::make_unique<Impl>(clock);
  impl->options = std::make_shared<const TransportOptions>(std::move(options));
  impl->pools = impl->MakePools(impl->options);
  return std::unique_ptr<CurlTransport>(new CurlTransport(std::move(impl)));
}

CurlTransport::CurlTransport(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

CurlTransport::~CurlTransport() {
  for (const auto& pool : impl_->pools) pool->Close();
  for (const auto& pool : impl_->draining) pool->Close();
}

Result<HttpResponse> CurlTransport::Send(const HttpRequest& request, std::stop_token stop) {
  auto started = impl_->Start(Exchange::Kind::kWhole, request);
  if (!started) return std::move(started).error();
  Result<HttpResponse> response = started->exchange->AwaitWhole(started->deadline, std::move(stop));
  if (!response && !started->exchange->has_ended()) started->pool->Abandon(started->exchange);
  return response;
}

Result<StreamResponse> CurlTransport::Open(const HttpRequest& request, std::stop_token stop) {
  auto started = impl_->Start(Exchange::Kind::kStream, request);
  if (!started) return std::move(started).error();
  Result<HttpResponse> head = started->exchange->AwaitHead(started->deadline, std::move(stop));
  if (!head) {
    if (!started->exchange->has_ended()) started->pool->Abandon(started->exchange);
    return std::move(head).error();
  }
  StreamResponse response;
  response.head = *std::move(head);
  if (response.head.status == 200) {
    response.stream = std::make_unique<CurlStream>(std::move(started->pool), std::move(started->exchange));
  }
  return response;
}

Status CurlTransport::Reload(TransportOptions options) {
  if (Status status = CheckOptions(options); !status) return status;
  auto shared = std::make_shared<const TransportOptions>(std::move(options));
  Impl::Pools fresh = impl_->MakePools(shared);
  std::vector<std::shared_ptr<CurlPool>> ended;
  {
    std::lock_guard lock(impl_->mutex);
    impl_->options = std::move(shared);
    fresh.swap(impl_->pools);
    std::erase_if(impl_->draining, [&](const std::shared_ptr<CurlPool>& pool) {
      if (!pool->has_ended()) return false;
      ended.push_back(pool);
      return true;
    });
    impl_->draining.insert(impl_->draining.end(), fresh.begin(), fresh.end());
  }
  for (const auto& pool : fresh) pool->Drain();
  for (const auto& pool : ended) pool->Close();
  return {};
}

std::int64_t CurlTransport::connections_opened() const {
  return impl_->connections_opened.load(std::memory_order_relaxed);
}

}  // namespace kube

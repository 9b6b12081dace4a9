// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/curl_transport.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <span>
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

template <typename T>
bool TimedOut(const Result<T>& result) {
  return !result && result.error().code() == ErrorCode::kTimeout;
}

// The caller waits no longer, and has `timed_out` unless it was stopped. After a time-out the pool drains, so that
// later exchanges get new connections (rule H5): curl would take the same one again, and over HTTP/2 a connection that
// hangs looks like one that is quiet. What still runs on the old ones is left alone, since the server may only be slow.
void GiveUp(CurlPool& pool, std::shared_ptr<Exchange> exchange, bool timed_out) {
  if (exchange->has_ended()) return;
  if (timed_out) pool.Drain();
  pool.Abandon(std::move(exchange));
}

// Holds the pool by shared_ptr: a stream may outlive the transport, which has then closed the pool.
class CurlStream final : public ByteStream {
 public:
  CurlStream(std::shared_ptr<CurlPool> pool, std::shared_ptr<Exchange> exchange)
      : pool_(std::move(pool)), exchange_(std::move(exchange)) {}
  ~CurlStream() override { GiveUp(*pool_, std::move(exchange_), is_silent_); }
  Result<std::string> Read(TimePoint until, std::stop_token stop) override {
    Result<std::string> chunk = exchange_->AwaitChunk(until, std::move(stop));
    is_silent_ = TimedOut(chunk);
    return chunk;
  }

 private:
  std::shared_ptr<CurlPool> pool_;
  std::shared_ptr<Exchange> exchange_;
  bool is_silent_ = false;  // The last Read() waited in vain.
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
  std::shared_ptr<CurlPool> MakePool(HttpPool which, std::shared_ptr<const TransportOptions> options);
  Pools MakePools(const std::shared_ptr<const TransportOptions>& options);
  Result<Started> Start(Exchange::Kind kind, const HttpRequest& request);
  // Puts a new pool in the place of one that takes no more, unless somebody else has.
  void Replace(HttpPool which, const std::shared_ptr<CurlPool>& drained);
  // Keeps `old` until they have ended; returns those that have, to be closed without the lock. REQUIRES: mutex is held.
  std::vector<std::shared_ptr<CurlPool>> KeepDraining(std::span<const std::shared_ptr<CurlPool>> old);

  const Clock& clock;
  std::atomic<std::int64_t> connections_opened{0};
  std::mutex mutex;  // Guards all below.
  std::shared_ptr<const TransportOptions> options;
  Pools pools;
  std::vector<std::shared_ptr<CurlPool>> draining;
};

std::shared_ptr<CurlPool> CurlTransport::Impl::MakePool(HttpPool which, std::shared_ptr<const TransportOptions> from) {
  PoolOptions pool;
  switch (which) {
    case HttpPool::kRequest:
      pool = {"http-request", from->request_connections, std::max(from->request_connections, kMinHttp1Requests),
              kRequestGather};
      break;
    case HttpPool::kWatch:
      pool = {"http-watch", from->watch_connections, std::max(from->watch_connections, kMaxHttp1Watches), kWatchGather};
      break;
    case HttpPool::kLease: pool = {"http-lease", from->lease_connections, std::max(from->lease_connections, 2)}; break;
  }
  return std::make_shared<CurlPool>(std::move(from), std::move(pool), connections_opened);
}

CurlTransport::Impl::Pools CurlTransport::Impl::MakePools(const std::shared_ptr<const TransportOptions>& from) {
  return {MakePool(HttpPool::kRequest, from), MakePool(HttpPool::kWatch, from), MakePool(HttpPool::kLease, from)};
}

void CurlTransport::Impl::Replace(HttpPool which, const std::shared_ptr<CurlPool>& drained) {
  std::vector<std::shared_ptr<CurlPool>> ended;
  {
    std::lock_guard lock(mutex);
    std::shared_ptr<CurlPool>& current = pools[static_cast<std::size_t>(which)];
    if (current != drained) return;
    current = MakePool(which, options);
    ended = KeepDraining({&drained, 1});
  }
  for (const auto& pool : ended) pool->Close();
}

std::vector<std::shared_ptr<CurlPool>> CurlTransport::Impl::KeepDraining(
    std::span<const std::shared_ptr<CurlPool>> old) {
  draining.insert(draining.end(), old.begin(), old.end());
  const auto running =
      std::partition(draining.begin(), draining.end(), [](const auto& pool) { return pool->has_ended(); });
  std::vector<std::shared_ptr<CurlPool>> ended(draining.begin(), running);
  draining.erase(draining.begin(), running);
  return ended;
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
    if (started.pool->Start(started.exchange)) return started;
    // An exchange timed out on it, or Reload() has replaced it since.
    Replace(request.pool, started.pool);
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
  if (!response) GiveUp(*started->pool, std::move(started->exchange), TimedOut(response));
  return response;
}

Result<StreamResponse> CurlTransport::Open(const HttpRequest& request, std::stop_token stop) {
  auto started = impl_->Start(Exchange::Kind::kStream, request);
  if (!started) return std::move(started).error();
  Result<HttpResponse> head = started->exchange->AwaitHead(started->deadline, std::move(stop));
  if (!head) {
    GiveUp(*started->pool, std::move(started->exchange), TimedOut(head));
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
    ended = impl_->KeepDraining(fresh);
  }
  for (const auto& pool : fresh) pool->Drain();
  for (const auto& pool : ended) pool->Close();
  return {};
}

std::int64_t CurlTransport::connections_opened() const {
  return impl_->connections_opened.load(std::memory_order_relaxed);
}

}  // namespace kube

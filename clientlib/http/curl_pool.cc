// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/curl_pool.h"

#include <pthread.h>

#include <cassert>
#include <csignal>
#include <new>
#include <utility>

namespace kube {
namespace {

// What kube-apiserver allows on a connection (rule H4): further streams would wait there unnoticed.
constexpr long kMaxStreams = 100;
constexpr std::size_t kIdleTransfers = 8;  // Kept for the next exchanges, about 10 kB each.

}  // namespace

CurlPool::CurlPool(std::shared_ptr<const TransportOptions> transport, PoolOptions options,
                   std::atomic<std::int64_t>& connections_opened)
    : options_(std::move(options)),
      multi_(curl_multi_init()),
      poller_(multi_, options_.gather),
      shared_{
          .options = std::move(transport), .tls_sessions = curl_share_init(), .connections_opened = connections_opened},
      is_http1_(shared_.options->server.starts_with("http://")) {
  if (multi_ == nullptr || shared_.tls_sessions == nullptr) throw std::bad_alloc();
  // Only the I/O thread uses the share, so it needs no lock functions.
  curl_share_setopt(shared_.tls_sessions, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_MULTIPLEX));
  curl_multi_setopt(multi_, CURLMOPT_MAX_CONCURRENT_STREAMS, kMaxStreams);
  SetConnectionLimit();
  thread_ = std::thread([this] { Run(); });
  pthread_setname_np(thread_.native_handle(), options_.name.c_str());
}

CurlPool::~CurlPool() { assert(!thread_.joinable()); }

bool CurlPool::Start(std::shared_ptr<Exchange> exchange) {
  std::lock_guard lock(mutex_);
  if (phase_ != Phase::kOpen) return false;
  Post({Command::Kind::kStart, std::move(exchange)});
  return true;
}

void CurlPool::Abandon(std::shared_ptr<Exchange> exchange) {
  std::lock_guard lock(mutex_);
  if (phase_ == Phase::kEnded) return;
  Post({Command::Kind::kAbandon, std::move(exchange)});
}

void CurlPool::Post(Command command) {
  commands_.push_back(std::move(command));
  // One wake-up serves all commands that wait.
  if (commands_.size() == 1) poller_.Wake();
}

void CurlPool::Drain() {
  std::lock_guard lock(mutex_);
  if (phase_ != Phase::kOpen) return;
  phase_ = Phase::kDraining;
  poller_.Wake();
}

void CurlPool::Close() {
  {
    std::lock_guard lock(mutex_);
    if (phase_ != Phase::kEnded) {
      phase_ = Phase::kClosing;
      poller_.Wake();
    }
  }
  thread_.join();
}

bool CurlPool::has_ended() const {
  std::lock_guard lock(mutex_);
  return phase_ == Phase::kEnded;
}

void CurlPool::Run() {
  // Signals are for the main thread; and with CURLOPT_NOSIGNAL curl does not guard against SIGPIPE itself.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);

  while (TakeCommands()) {
    AdaptToHttpVersion();
    CollectEnded();
    poller_.Drive();
  }
  EndAll();
}

bool CurlPool::TakeCommands() {
  Phase phase;
  {
    std::lock_guard lock(mutex_);
    taken_.swap(commands_);
    phase = phase_;
  }
  for (Command& command : taken_) {
    if (command.kind == Command::Kind::kStart) {
      Add(std::move(command.exchange));
    } else {
      Remove(command.exchange.get());
    }
  }
  taken_.clear();
  return phase == Phase::kOpen || (phase == Phase::kDraining && !active_.empty());
}

void CurlPool::Add(std::shared_ptr<Exchange> exchange) {
  std::unique_ptr<CurlTransfer> transfer;
  if (idle_.empty()) {
    transfer = std::make_unique<CurlTransfer>(shared_);
  } else {
    transfer = std::move(idle_.back());
    idle_.pop_back();
  }
  const Exchange* key = exchange.get();
  transfer->Prepare(std::move(exchange), !is_http1_);
  curl_multi_add_handle(multi_, transfer->easy());
  active_.emplace(key, std::move(transfer));
}

void CurlPool::Remove(const Exchange* exchange) {
  const auto found = active_.find(exchange);
  if (found == active_.end()) return;  // It ended meanwhile.
  std::unique_ptr<CurlTransfer> transfer = std::move(found->second);
  active_.erase(found);
  curl_multi_remove_handle(multi_, transfer->easy());
  transfer->Drop(std::nullopt);
  Recycle(std::move(transfer));
}

void CurlPool::CollectEnded() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode code = message->data.result;
    CURL* easy = message->easy_handle;
    curl_multi_remove_handle(multi_, easy);  // Frees `message`.
    const auto found = active_.find(CurlTransfer::From(easy).exchange());
    std::unique_ptr<CurlTransfer> transfer = std::move(found->second);
    active_.erase(found);
    transfer->End(code);
    Recycle(std::move(transfer));
  }
}

void CurlPool::Recycle(std::unique_ptr<CurlTransfer> transfer) {
  if (idle_.size() < kIdleTransfers) idle_.push_back(std::move(transfer));
}

void CurlPool::AdaptToHttpVersion() {
  if (shared_.http_major == 0 || is_http1_ == (shared_.http_major == 1)) return;
  is_http1_ = shared_.http_major == 1;
  SetConnectionLimit();
  // curl does not apply the new limit to exchanges that wait to share a connection: restart them.
  for (const auto& [exchange, transfer] : active_) {
    if (transfer->was_sent()) continue;
    curl_multi_remove_handle(multi_, transfer->easy());
    transfer->SetMayShareConnection(!is_http1_);
    curl_multi_add_handle(multi_, transfer->easy());
  }
}

void CurlPool::SetConnectionLimit() {
  const int limit = is_http1_ ? options_.max_http1_connections : options_.max_connections;
  curl_multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, static_cast<long>(limit));
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(limit));
}

void CurlPool::EndAll() {
  std::vector<Command> unseen;
  {
    std::lock_guard lock(mutex_);
    phase_ = Phase::kEnded;
    unseen.swap(commands_);
  }
  const Error closed(ErrorCode::kCancelled, "the transport is closed");
  for (const auto& [exchange, transfer] : active_) {
    curl_multi_remove_handle(multi_, transfer->easy());
    transfer->Drop(closed);
  }
  for (const Command& command : unseen) {
    if (command.kind == Command::Kind::kStart) command.exchange->OnEnd(closed);
  }
  active_.clear();
  idle_.clear();
  curl_multi_cleanup(multi_);
  curl_share_cleanup(shared_.tls_sessions);
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
// A curl multi handle and the I/O thread that drives it.
//
// All curl calls except the wake-up happen on that thread, so nothing in curl is locked. Handles are reused for later
// exchanges. Over HTTP/2 exchanges share at most `max_connections` connections; a server that speaks only HTTP/1.1
// takes one exchange per connection, so the limit is then `max_http1_connections`. Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "clientlib/http/curl_poller.h"
#include "clientlib/http/curl_transfer.h"

namespace kube {

struct PoolOptions {
  std::string name;  // Of the thread, at most 15 characters.
  int max_connections = 1;
  int max_http1_connections = 1;
  // See CurlPoller.
  Duration gather{};
};

class CurlPool {
 public:
  // `connections_opened` must outlive Close().
  CurlPool(std::shared_ptr<const TransportOptions> transport, PoolOptions options,
           std::atomic<std::int64_t>& connections_opened);
  ~CurlPool();  // REQUIRES: Close() was called.
  CurlPool(const CurlPool&) = delete;
  CurlPool& operator=(const CurlPool&) = delete;

  // Never blocks on the network. False if the pool takes no more: after Drain() or Close().
  bool Start(std::shared_ptr<Exchange> exchange);
  // The caller no longer waits: its transfer is removed soon, without OnEnd(). Never blocks on the network.
  void Abandon(std::shared_ptr<Exchange> exchange);
  // Takes no more exchanges; the I/O thread ends after the last running one.
  void Drain();
  // Ends all exchanges with kCancelled and joins the I/O thread. Once, from one thread.
  void Close();
  // Drained: Close() will not wait.
  bool has_ended() const;

 private:
  struct Command {
    enum class Kind { kStart, kAbandon } kind;
    std::shared_ptr<Exchange> exchange;
  };
  enum class Phase { kOpen, kDraining, kClosing, kEnded };

  void Post(Command command);  // REQUIRES: mutex_ is held.
  void Run();
  bool TakeCommands();  // False: the thread is to end.
  void Add(std::shared_ptr<Exchange> exchange);
  void Remove(const Exchange* exchange);
  void CollectEnded();
  void Recycle(std::unique_ptr<CurlTransfer> transfer);
  void AdaptToHttpVersion();
  void SetConnectionLimit();
  void EndAll();

  const PoolOptions options_;

  mutable std::mutex mutex_;  // Guards commands_ and phase_.
  std::vector<Command> commands_;
  Phase phase_ = Phase::kOpen;

  // I/O thread only, but for CurlPoller::Wake().
  CURLM* const multi_;
  CurlPoller poller_;
  CurlShared shared_;
  bool is_http1_;
  std::vector<Command> taken_;
  std::unordered_map<const Exchange*, std::unique_ptr<CurlTransfer>> active_;
  std::vector<std::unique_ptr<CurlTransfer>> idle_;

  std::thread thread_;
};

}  // namespace kube

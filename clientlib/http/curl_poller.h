// SPDX-License-Identifier: Apache-2.0
// Drives a curl multi handle with epoll: handles only transfers whose socket or timer is ready.
//
// (curl_multi_poll and curl_multi_perform make a system call for each running transfer at each wake-up.) One thread
// calls Drive(); any may call Wake(). The multi handle must outlive the last Drive(), and the poller the handle's
// cleanup.
#pragma once

#include <curl/curl.h>

#include <optional>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"

namespace kube {

class CurlPoller {
 public:
  // In a burst (more bytes arrive within `gather`), handle what arrives within `gather` together, which wakes this
  // thread and the readers less often. Bytes that arrive alone are delivered at once. Zero: always at once.
  CurlPoller(CURLM* multi, Duration gather);
  ~CurlPoller();
  CurlPoller(const CurlPoller&) = delete;
  CurlPoller& operator=(const CurlPoller&) = delete;

  // Waits for bytes, a timer or Wake(), then has curl handle what is due. The caller collects ended transfers.
  void Drive();
  // Ends the Drive() that waits, or the next one. Thread-safe.
  void Wake() const;

 private:
  static int OnSocket(CURL* easy, curl_socket_t socket, int what, void* self, void* data);
  static int OnTimer(CURLM* multi, long timeout_ms, void* self);
  void RunTimer();
  int MillisecondsToWait() const;

  CURLM* const multi_;
  const Duration gather_;
  const int epoll_, wake_;
  std::optional<TimePoint> timer_;
  TimePoint last_bytes_{};
};

}  // namespace kube

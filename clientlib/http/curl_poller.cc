// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/curl_poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <thread>

namespace kube {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

// A backstop for bytes that curl holds in its own buffers: they come at most this late.
constexpr milliseconds kLongestWait(1000);

int Checked(int fd) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), "create a file descriptor for HTTP I/O");
  return fd;
}

// A connection that never came up is closed before curl tells (7.88: cf_socket_close, "not active"). Closing has
// removed it then, and its number may already be another thread's file, which is in no epoll of ours: nothing happens
// to it. The bare system call keeps ThreadSanitizer from taking this for a use of that file.
void Forget(int epoll, int socket) { syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_DEL, socket, nullptr); }

}  // namespace

CurlPoller::CurlPoller(CURLM* multi, Duration gather)
    : multi_(multi),
      gather_(gather),
      epoll_(Checked(epoll_create1(EPOLL_CLOEXEC))),
      wake_(Checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  Checked(epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event));
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlPoller::OnSocket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlPoller::OnTimer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
}

CurlPoller::~CurlPoller() {
  close(wake_);
  close(epoll_);
}

void CurlPoller::Wake() const {
  const std::uint64_t one = 1;
  // Fails only if 2^64 wake-ups are pending.
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
}

int CurlPoller::OnSocket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  const CurlPoller& poller = *static_cast<CurlPoller*>(self);
  epoll_event event{};
  event.data.fd = socket;
  if (what == CURL_POLL_REMOVE) {
    Forget(poller.epoll_, socket);
    return 0;
  }
  if (what != CURL_POLL_OUT) event.events |= EPOLLIN;
  if (what != CURL_POLL_IN) event.events |= EPOLLOUT;
  if (epoll_ctl(poller.epoll_, EPOLL_CTL_MOD, socket, &event) == 0) return 0;
  return epoll_ctl(poller.epoll_, EPOLL_CTL_ADD, socket, &event) == 0 ? 0 : -1;
}

int CurlPoller::OnTimer(CURLM*, long timeout_ms, void* self) {
  CurlPoller& poller = *static_cast<CurlPoller*>(self);
  if (timeout_ms < 0) poller.timer_.reset();
  else poller.timer_ = Steady::now() + milliseconds(timeout_ms);
  return 0;
}

void CurlPoller::RunTimer() {
  int running = 0;
  while (timer_ && *timer_ <= Steady::now()) {
    timer_.reset();  // curl sets the next one.
    curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

int CurlPoller::MillisecondsToWait() const {
  Duration wait = kLongestWait;
  if (timer_) wait = std::clamp<Duration>(*timer_ - Steady::now(), Duration::zero(), wait);
  return static_cast<int>(std::chrono::ceil<milliseconds>(wait).count());
}

void CurlPoller::Drive() {
  // A due timer runs after this wait, which is then zero: the caller can collect the transfers that the timer ends at
  // once.
  std::array<epoll_event, 32> events{};
  int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), MillisecondsToWait());
  const bool has_bytes = std::any_of(events.begin(), events.begin() + std::max(count, 0),
                                     [this](const epoll_event& event) { return event.data.fd != wake_; });
  if (has_bytes && gather_ > Duration::zero()) {
    if (Steady::now() < last_bytes_ + gather_) {
      std::this_thread::sleep_for(gather_);
      count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
    }
    last_bytes_ = Steady::now();
  }
  int running = 0;
  if (count == 0 && !timer_) curl_multi_perform(multi_, &running);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd == wake_) {
      std::uint64_t wakes = 0;
      [[maybe_unused]] const auto read_bytes = read(wake_, &wakes, sizeof wakes);
      continue;
    }
    int ready = 0;
    if (event.events & (EPOLLIN | EPOLLHUP)) ready |= CURL_CSELECT_IN;
    if (event.events & EPOLLOUT) ready |= CURL_CSELECT_OUT;
    if (event.events & EPOLLERR) ready |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi_, event.data.fd, ready, &running);
  }
  RunTimer();
}

}  // namespace kube

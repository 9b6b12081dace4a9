// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/clock.h"

#include <memory>
#include <random>
#include <thread>

namespace kube {
namespace {

class SystemThread final : public Thread::Impl {
 public:
  explicit SystemThread(std::function<void(std::stop_token)> body) : thread_(std::move(body)) {}
  void RequestStop() override { thread_.request_stop(); }
  void Join() override { thread_.join(); }

 private:
  std::jthread thread_;
};

}  // namespace

Thread Clock::Spawn(std::function<void(std::stop_token)> body) const {
  return Thread(std::make_unique<SystemThread>(std::move(body)));
}

std::uint64_t Clock::RandomSeed() const {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

TimePoint SystemClock::Now() const { return std::chrono::steady_clock::now(); }

WallTime SystemClock::WallNow() const { return std::chrono::system_clock::now(); }

void SystemClock::WaitUntil(std::unique_lock<std::mutex>& lock, CondVar& condition, TimePoint until) const {
  if (until == TimePoint::max()) {
    condition.variable().wait(lock);
  } else {
    condition.variable().wait_until(lock, until);
  }
}

}  // namespace kube

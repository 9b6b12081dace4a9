// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/leader_elector.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "clientlib/base/backoff.h"
#include "clientlib/base/failure_news.h"
#include "clientlib/base/wait.h"
#include "clientlib/runtime/lease_record.h"

namespace kube {
namespace {

// A candidate reads the lease every 0.5 to 0.85 retry periods. The jitter spreads candidates that started together; the
// short interval allows a takeover within the lease's duration plus one retry period. (client-go waits 1 to 2.2
// periods.)
constexpr double kLook = 0.5, kJitter = 0.7;
constexpr double kLongestRetry = 1.2;
// After a renewal that failed at once the next comes so soon: the deadline runs, and a server that is away is not
// burdened.
constexpr double kAfterFailure = 0.25;
constexpr int kReleaseTries = 5;
constexpr Duration kReleaseWait = std::chrono::milliseconds(100);

std::string Seconds(Duration d) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(d).count()) + " s";
}

// The server's Retry-After.
Duration RetryAfter(const Result<bool>& answer) {
  return answer ? Duration{} : answer.error().retry_after().value_or(Duration{});
}

}  // namespace

struct LeaderElector::Impl {
  Impl(Client& client, const Clock& c, const Log& l, LeaderElectionOptions o)
      : clock(c),
        log(l),
        options(std::move(o)),
        record(client, c, options.lease, options.identity, options.lease_duration) {}

  // One term: from acquiring the lease until the work has ended. `is_lost` ends it early.
  struct Term {
    std::stop_source work;     // Ends the work.
    std::stop_source lost;     // Ends passes that still drain.
    std::stop_source renewal;  // Cancels a renewal in flight.
    std::optional<Error> failure;
  };

  bool Acquire(const std::stop_token& stop);
  Status Lead(const std::stop_token& stop, const LeaderElector::Work& lead);
  void Work(Term& term, const LeaderElector::Work& lead);
  void Renew(Term& term);
  void WatchDeadline(Term& term);
  void Lose(Term& term, std::string why);
  void Release();
  Result<bool> TryHold(std::stop_token stop);

  const Clock& clock;
  const Log& log;
  const LeaderElectionOptions options;
  LeaseRecord record;  // Used by the thread in Run() alone.

  mutable std::mutex mutex;  // Guards everything below, and `failure` of the term.
  CondVar changed;
  std::string holder;
  TimePoint renewed_at{};
  bool is_working = false;
  bool is_lost = false;
};

Result<std::unique_ptr<LeaderElector>> LeaderElector::Create(Client& client, const Clock& clock, const Log& log,
                                                             LeaderElectionOptions options) {
  const auto invalid = [](const char* why) { return Error(ErrorCode::kInvalidArgument, why).with("leader election"); };
  if (options.lease.ns.empty() || options.lease.name.empty()) return invalid("the lease has no namespace or name");
  if (options.identity.empty()) return invalid("the identity is empty");
  if (options.retry_period <= Duration::zero()) return invalid("the retry period must be positive");
  if (options.lease_duration <= options.renew_deadline) {
    return invalid("the lease duration must be longer than the renew deadline");
  }
  const std::chrono::duration<double, std::nano> longest_retry = options.retry_period * kLongestRetry;
  if (options.renew_deadline <= longest_retry) {
    return invalid("the renew deadline must be longer than 1.2 times the retry period");
  }
  return std::unique_ptr<LeaderElector>(
      new LeaderElector(std::make_unique<Impl>(client, clock, log, std::move(options))));
}

LeaderElector::LeaderElector(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LeaderElector::~LeaderElector() = default;

Status LeaderElector::Run(std::stop_token stop, const Work& lead) {
  if (!impl_->Acquire(stop)) return {};
  return impl_->Lead(stop, lead);
}

// False if a stop was requested first.
bool LeaderElector::Impl::Acquire(const std::stop_token& stop) {
  const auto look = std::chrono::duration_cast<Duration>(options.retry_period * kLook);
  Backoff backoff({look, look, 1.0, kJitter}, clock.RandomSeed());
  FailureNews news;
  while (!stop.stop_requested()) {
    const Result<bool> held = TryHold(stop);
    if (held && *held && !stop.stop_requested()) return true;
    if (held) {
      news.Reset();
    } else if (!stop.stop_requested() && news.IsNews(held.error(), clock.Now())) {
      log.Warn("lease not acquired", {{"lease", options.lease.ToString()}, {"error", held.error().message()}});
    }
    Duration wait = std::max(backoff.Next(), RetryAfter(held));
    // Try again no later than the lease expires.
    const auto end = record.expires_at();
    if (held && end && *end > clock.Now()) wait = std::min(wait, *end - clock.Now());
    WaitFor(clock, wait, stop);
  }
  // The stop came while a write was in flight.
  if (record.MayBeOurs()) Release();
  return false;
}

Status LeaderElector::Impl::Lead(const std::stop_token& stop, const LeaderElector::Work& lead) {
  Term term;
  {
    std::lock_guard lock(mutex);
    is_working = true;
    is_lost = false;
  }
  log.Info("became leader", {{"lease", options.lease.ToString()}, {"identity", options.identity}});
  {
    std::stop_callback on_stop(stop, [&term] { term.work.request_stop(); });
    Thread deadline = clock.Spawn([&](const std::stop_token&) { WatchDeadline(term); });
    Thread work = clock.Spawn([&](const std::stop_token&) { Work(term, lead); });
    Renew(term);
    work.Join();
    deadline.Join();
  }
  const bool has_lost = [&] {
    std::lock_guard lock(mutex);
    return is_lost;
  }();
  if (!has_lost) Release();
  if (term.failure) return *std::move(term.failure);
  return {};
}

void LeaderElector::Impl::Work(Term& term, const LeaderElector::Work& lead) {
  std::optional<Error> failure;
  try {
    lead(term.work.get_token(), term.lost.get_token());
  } catch (const std::exception& e) {
    failure = Error(ErrorCode::kInternal, e.what()).with("exception in the leader's work");
  } catch (...) {
    failure = Error(ErrorCode::kInternal, "exception of unknown type in the leader's work");
  }
  {
    std::lock_guard lock(mutex);
    is_working = false;
    if (!term.failure) term.failure = std::move(failure);
  }
  term.renewal.request_stop();
  changed.NotifyAll();
}

// Renews until the work has ended or leadership is lost.
void LeaderElector::Impl::Renew(Term& term) {
  std::unique_lock lock(mutex);
  const auto after_failure = std::chrono::duration_cast<Duration>(options.retry_period * kAfterFailure);
  // From the beginning of one try to that of the next: after one that hung the next comes at once, and leaves more of
  // the renew deadline than a second.
  TimePoint next = clock.Now() + options.retry_period;
  FailureNews news;
  while (is_working && !is_lost) {
    while (is_working && !is_lost && clock.Now() < next) clock.WaitUntil(lock, changed, next);
    if (!is_working || is_lost) return;
    lock.unlock();

    const TimePoint began = clock.Now();
    const Result<bool> held = TryHold(term.renewal.get_token());
    next = std::max(began + (held ? options.retry_period : after_failure), clock.Now() + RetryAfter(held));
    if (held) {
      news.Reset();
    } else if (!term.renewal.stop_requested() && news.IsNews(held.error(), clock.Now())) {
      log.Warn("lease not renewed", {{"lease", options.lease.ToString()}, {"error", held.error().message()}});
    }
    if (held && !*held && !record.holder().empty() && !record.IsOurs()) {
      Lose(term, "the lease is held by " + record.holder());
    }
    lock.lock();
  }
}

// On a thread of its own, because a renewal may hang beyond the deadline.
void LeaderElector::Impl::WatchDeadline(Term& term) {
  std::unique_lock lock(mutex);
  while (is_working && !is_lost) {
    const TimePoint until = renewed_at + options.renew_deadline;
    if (clock.Now() >= until) {
      lock.unlock();
      return Lose(term, "the lease was not renewed for " + Seconds(options.renew_deadline));
    }
    clock.WaitUntil(lock, changed, until);
  }
}

void LeaderElector::Impl::Lose(Term& term, std::string why) {
  {
    std::lock_guard lock(mutex);
    if (is_lost || !is_working) return;
    is_lost = true;
    term.failure = Error(ErrorCode::kUnavailable, why).with("leadership lost");
  }
  term.lost.request_stop();
  term.work.request_stop();
  term.renewal.request_stop();
  changed.NotifyAll();
  log.Error("leadership lost", {{"lease", options.lease.ToString()}, {"reason", why}});
}

// A failure is only logged: the lease then expires by itself.
void LeaderElector::Impl::Release() {
  Status released;
  int failures = 0;
  for (int tries = 1; tries <= kReleaseTries; ++tries) {
    released = record.TryRelease({});
    if (released) break;
    if (released.error().code() == ErrorCode::kConflict) continue;
    // The process is ending: a server that does not answer gets one more try.
    if (++failures == 2) break;
    WaitFor(clock, kReleaseWait, {});
  }
  {
    std::lock_guard lock(mutex);
    holder = record.holder();
  }
  if (released) {
    log.Info("lease given back", {{"lease", options.lease.ToString()}});
  } else {
    log.Warn("lease not given back", {{"lease", options.lease.ToString()}, {"error", released.error().message()}});
  }
}

Result<bool> LeaderElector::Impl::TryHold(std::stop_token stop) {
  Result<bool> held = record.TryHold(std::move(stop));
  const bool has_new_holder = [&] {
    std::lock_guard lock(mutex);
    renewed_at = record.renewed_at();
    return std::exchange(holder, record.holder()) != record.holder();
  }();
  if (has_new_holder && !record.holder().empty() && !record.IsOurs()) {
    log.Info("new leader", {{"lease", options.lease.ToString()}, {"holder", record.holder()}});
  }
  return held;
}

bool LeaderElector::IsLeader() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->is_working && !impl_->is_lost && impl_->clock.Now() < impl_->renewed_at + impl_->options.renew_deadline;
}

std::string LeaderElector::Holder() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->holder;
}

Status LeaderElector::CheckHealth(Duration tolerance) const {
  std::lock_guard lock(impl_->mutex);
  const Duration age = impl_->clock.Now() - impl_->renewed_at;
  if (!impl_->is_working || age <= impl_->options.lease_duration + tolerance) return {};
  return Error(ErrorCode::kUnavailable, "lease " + impl_->options.lease.ToString() + " was not renewed for " +
                                            Seconds(age) + ", but the work goes on");
}

}  // namespace kube

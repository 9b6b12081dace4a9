// SPDX-License-Identifier: Apache-2.0
// Runs a reconciler over the keys of a work queue, on a few threads.
//
// After a pass (rule Q4): an error requeues the key with backoff; a terminal error is counted and not retried;
// Action::After(d) requeues the key after d; Action::AwaitChange() waits for the next event. An exception is a bug: it
// is logged, counted and treated as an error, and the process goes on. When a pass exceeds its deadline, its stop token
// fires. Thread-safe: queue() and Enqueue().
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "clientlib/base/log.h"
#include "clientlib/base/result.h"
#include "clientlib/runtime/metrics.h"
#include "clientlib/runtime/rate_limiter.h"
#include "clientlib/runtime/work_queue.h"

namespace kube {

class Action {
 public:
  static Action AwaitChange() { return Action{}; }
  static Action After(Duration delay) {
    Action action;
    action.delay_ = delay;
    return action;
  }
  std::optional<Duration> delay() const { return delay_; }

 private:
  std::optional<Duration> delay_;
};

class Reconciler {
 public:
  virtual ~Reconciler() = default;
  // One pass over one object. Called by many threads, never twice at once for one key. Must honour `stop`.
  virtual Result<Action> Reconcile(const ObjectKey& key, std::stop_token stop) = 0;
};

struct ControllerOptions {
  std::string name;                             // Label of its metrics.
  int threads = 4;                              // At most a quarter, but at least one, reconcile keys of low priority.
  Duration deadline = std::chrono::minutes(2);  // Of one pass.
  RateLimits rate_limits{};
};

class Controller {
 public:
  Controller(Reconciler& reconciler, ControllerOptions options, const Clock& clock, const Log& log, Registry& metrics);
  ~Controller();  // Stops and joins.

  WorkQueue& queue() { return queue_; }
  const std::string& name() const { return options_.name; }

  void Start();
  // Starts no new passes; waits for running ones until `until`, then fires their stop tokens and joins. False if it had
  // to fire them.
  bool Stop(TimePoint until);
  // Starts no new passes and fires the stop tokens of running ones now. This also ends the wait of a Stop() on another
  // thread. Does not block. REQUIRES: Start() has returned.
  void CutOff();

 private:
  struct Metrics;
  struct Slot;  // What one thread is doing, for the deadline.
  void RunThread(Slot& slot);
  void RunPass(Slot& slot, const WorkQueue::Item& item);
  void WatchDeadlines(std::stop_token stop);

  Reconciler& reconciler_;
  const ControllerOptions options_;
  const Clock& clock_;
  const Log& log_;
  WorkQueue queue_;
  RateLimiter rate_limiter_;
  std::unique_ptr<Metrics> metrics_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Thread> threads_;
  Thread deadline_thread_;
};

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/controller.h"

#include <algorithm>
#include <exception>

namespace kube {
namespace {

const std::vector<double>& LatencyBounds() {
  static const std::vector<double> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                              0.5,   1,      2.5,   5,    10,    30,   60};
  return kBounds;
}

double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

// Cap Retry-After: until then, events do not wake the key.
constexpr Duration kLongestRetryAfter = std::chrono::minutes(10);

constexpr std::string_view kReconcileTotal = "controller_runtime_reconcile_total";

}  // namespace

struct Controller::Metrics {
  Metrics(Registry& registry, const std::string& name, const WorkQueue& queue, int threads)
      : success(Outcome(registry, name, "success")),
        requeue_after(Outcome(registry, name, "requeue_after")),
        error(Outcome(registry, name, "error")),
        errors(registry.GetCounter("controller_runtime_reconcile_errors_total", "Reconciliation errors per controller.",
                                   {"controller"}, {name})),
        terminal(registry.GetCounter("controller_runtime_terminal_reconcile_errors_total",
                                     "Terminal reconciliation errors per controller.", {"controller"}, {name})),
        panics(registry.GetCounter("controller_runtime_reconcile_panics_total",
                                   "Exceptions in reconciles per controller.", {"controller"}, {name})),
        timeouts(registry.GetCounter("controller_runtime_reconcile_timeouts_total",
                                     "Reconciles that outlived their deadline per controller.", {"controller"},
                                     {name})),
        retries(registry.GetCounter("workqueue_retries_total", "Retries handled by workqueue.", {"name"}, {name})),
        time(registry.GetHistogram("controller_runtime_reconcile_time_seconds",
                                   "Length of time per reconciliation per controller.", LatencyBounds(), {"controller"},
                                   {name})),
        waited(registry.GetHistogram("workqueue_queue_duration_seconds",
                                     "How long an item stays in workqueue before being requested.", LatencyBounds(),
                                     {"name"}, {name})),
        worked(registry.GetHistogram("workqueue_work_duration_seconds",
                                     "How long processing an item from workqueue takes.", LatencyBounds(), {"name"},
                                     {name})),
        active(registry.GetGauge("controller_runtime_active_workers", "Number of currently used reconcile threads.",
                                 {"controller"}, {name})) {
    registry
        .GetGauge("controller_runtime_max_concurrent_reconciles", "Number of reconcile threads.", {"controller"},
                  {name})
        .Set(threads);
    registry.AddGaugeFunction("workqueue_depth", "Current depth of workqueue.", {"name"}, {name},
                              [&queue] { return static_cast<double>(queue.counts().depth); });
    registry.AddCounterFunction("workqueue_adds_total", "Number of adds handled by workqueue.", {"name"}, {name},
                                [&queue] { return static_cast<double>(queue.counts().adds); });
  }
  static Counter& Outcome(Registry& registry, const std::string& name, std::string result) {
    return registry.GetCounter(kReconcileTotal, "Total number of reconciliations per controller.",
                               {"controller", "result"}, {name, std::move(result)});
  }

  Counter &success, &requeue_after, &error, &errors, &terminal, &panics, &timeouts, &retries;
  Histogram &time, &waited, &worked;
  Gauge& active;
};

struct Controller::Slot {
  std::mutex mutex;  // Guards the rest.
  std::stop_source stop{std::nostopstate};
  TimePoint deadline = TimePoint::max();
  bool has_timed_out = false;
  bool is_cut_off = false;  // Set by CutOff(): a pass that begins later starts with its stop token fired.
};

Controller::Controller(Reconciler& reconciler, ControllerOptions options, const Clock& clock, const Log& log,
                       Registry& metrics)
    : reconciler_(reconciler),
      options_(std::move(options)),
      clock_(clock),
      log_(log),
      queue_(clock, std::max(1, options_.threads / 4)),
      rate_limiter_(clock, options_.rate_limits, clock.RandomSeed()),
      metrics_(std::make_unique<Metrics>(metrics, options_.name, queue_, options_.threads)) {}

Controller::~Controller() { Stop(clock_.Now()); }

void Controller::Start() {
  for (int i = 0; i < options_.threads; ++i) slots_.push_back(std::make_unique<Slot>());
  for (auto& slot : slots_) {
    threads_.push_back(clock_.Spawn([this, &slot = *slot](const std::stop_token&) { RunThread(slot); }));
  }
  deadline_thread_ = clock_.Spawn([this](std::stop_token stop) { WatchDeadlines(std::move(stop)); });
}

bool Controller::Stop(TimePoint until) {
  queue_.ShutDown();
  const bool is_drained = queue_.Drain(until);
  if (!is_drained) CutOff();
  threads_.clear();
  deadline_thread_ = {};
  return is_drained;
}

void Controller::CutOff() {
  queue_.ShutDown();
  for (auto& slot : slots_) {
    std::lock_guard lock(slot->mutex);
    slot->is_cut_off = true;
    slot->stop.request_stop();
  }
}

void Controller::RunThread(Slot& slot) {
  while (std::optional<WorkQueue::Item> item = queue_.Get()) {
    RunPass(slot, *item);
    queue_.Done(item->key);
  }
}

void Controller::RunPass(Slot& slot, const WorkQueue::Item& item) {
  const TimePoint started = clock_.Now();
  std::stop_token stop;
  {
    std::lock_guard lock(slot.mutex);
    slot.stop = std::stop_source();
    slot.deadline = started + options_.deadline;
    slot.has_timed_out = false;
    if (slot.is_cut_off) slot.stop.request_stop();
    stop = slot.stop.get_token();
  }
  metrics_->active.Add(1);
  metrics_->waited.Observe(Seconds(item.waited));

  Result<Action> result = Error(ErrorCode::kInternal, "not run");
  try {
    result = reconciler_.Reconcile(item.key, stop);
  } catch (const std::exception& e) {
    metrics_->panics.Add();
    result = Error(ErrorCode::kInternal, std::string("exception: ") + e.what());
  } catch (...) {
    metrics_->panics.Add();
    result = Error(ErrorCode::kInternal, "exception of unknown type");
  }

  metrics_->active.Add(-1);
  const double took = Seconds(clock_.Now() - started);
  metrics_->time.Observe(took);
  metrics_->worked.Observe(took);
  {
    std::lock_guard lock(slot.mutex);
    slot.deadline = TimePoint::max();
    if (slot.has_timed_out) metrics_->timeouts.Add();
  }

  if (result) {
    rate_limiter_.Forget(item.key);
    if (result->delay()) {
      metrics_->requeue_after.Add();
      queue_.AddAfter(item.key, *result->delay(), item.priority);
    } else {
      metrics_->success.Add();
    }
    return;
  }
  const Error& error = result.error();
  metrics_->error.Add();
  metrics_->errors.Add();
  log_.Warn("reconcile failed", {{"controller", options_.name},
                                 {"object", item.key.ToString()},
                                 {"error", error.message()},
                                 {"retry", error.is_terminal() ? "on change" : "with backoff"}});
  if (error.is_terminal()) {
    metrics_->terminal.Add();
    rate_limiter_.Forget(item.key);
    return;
  }
  metrics_->retries.Add();
  const Duration backoff = rate_limiter_.When(item.key);
  // An event may requeue a failed key before its backoff ends, but not before the server's Retry-After ends.
  if (error.retry_after()) {
    queue_.AddNotBefore(item.key, std::max(backoff, std::min(*error.retry_after(), kLongestRetryAfter)), item.priority);
    return;
  }
  queue_.AddAfter(item.key, backoff, item.priority);
}

void Controller::WatchDeadlines(std::stop_token stop) {
  // Deadlines are minutes long, so one check a second is precise enough.
  std::mutex mutex;
  CondVar wake;
  std::stop_callback on_stop(stop, [&] {
    std::lock_guard lock(mutex);
    wake.NotifyAll();
  });
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    clock_.WaitUntil(lock, wake, clock_.Now() + std::chrono::seconds(1));
    const TimePoint now = clock_.Now();
    for (auto& slot : slots_) {
      std::lock_guard slot_lock(slot->mutex);
      if (now < slot->deadline) continue;
      slot->deadline = TimePoint::max();
      slot->has_timed_out = true;
      slot->stop.request_stop();
    }
  }
}

}  // namespace kube

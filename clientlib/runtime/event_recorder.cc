// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/event_recorder.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <functional>
#include <list>
#include <mutex>
#include <unordered_map>

#include "clientlib/base/backoff.h"
#include "clientlib/base/bounded_queue.h"
#include "clientlib/base/lower_case.h"
#include "clientlib/base/wait.h"
#include "clientlib/model/events_v1.h"
#include "clientlib/runtime/event_limiter.h"

namespace kube {
namespace {

// Limits of the API server's validation.
constexpr std::size_t kMaxWord = 128;
constexpr std::size_t kMaxNote = 1024;
constexpr std::size_t kMaxName = 253;

constexpr std::size_t kMaxSeries = 4096;
constexpr Duration kSeriesWindow = std::chrono::minutes(6);
constexpr Duration kSeriesInterval = std::chrono::minutes(1);

constexpr int kTries = 12;
constexpr BackoffPolicy kRetry{std::chrono::seconds(1), std::chrono::seconds(10), 2.0, 0.25};
constexpr Duration kLongestRetryAfter = std::chrono::seconds(30);
constexpr Duration kCloseTimeout = std::chrono::seconds(2);

// What Record() was told, and when.
struct Occurrence {
  EventType type;
  std::string api_version, kind, ns, name, uid, resource_version;
  std::string reason, action, note;
  WallTime wall;
  TimePoint at;

  // Equal for equal events. Only the note, the last part, may contain a line feed.
  std::string SeriesKey() const {
    std::string key(type == EventType::kNormal ? "N" : "W");
    for (const std::string* part : {&reason, &action, &note}) key.append("\n").append(*part);
    return ObjectText().append(key);
  }
  std::string ObjectText() const {
    std::string text;
    for (const std::string* part : {&api_version, &kind, &ns, &name, &uid}) text.append(*part).append("\n");
    return text;
  }
};

struct Series {
  std::string key;
  Occurrence first;
  ObjectKey event;  // The Event object.
  std::int32_t count = 1;
  WallTime last_wall;
  TimePoint last_at;
  bool is_dirty = false;  // `count` is not written yet.
};

// At most `limit` bytes, without half a UTF-8 character at the end.
std::string Cut(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xC0) == 0x80) --limit;
  return std::string(text.substr(0, limit));
}

// "<name>.<hex>", made to be a DNS subdomain: some kinds (ClusterRole) allow other names.
std::string EventName(std::string_view regarding, std::uint64_t unique) {
  char hex[16];
  const std::string_view suffix(hex, static_cast<std::size_t>(std::to_chars(hex, hex + 16, unique, 16).ptr - hex));
  std::string name(regarding.substr(0, kMaxName - 1 - suffix.size()));
  for (char& c : name) {
    c = LowerCase(c);
    const bool is_allowed = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    if (!is_allowed) c = '-';
  }
  name.erase(0, name.find_first_not_of("-."));
  name.erase(name.find_last_not_of("-.") + 1);
  return (name.empty() ? "event" : name).append(".").append(suffix);
}

Json SeriesJson(const Series& series) {
  return Json::MakeObject({{"count", series.count}, {"lastObservedTime", ToMicroText(Time{series.last_wall})}});
}

bool IsTransient(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout:
    case ErrorCode::kTooManyRequests:
    case ErrorCode::kConflict:
    case ErrorCode::kUnauthorized: return true;  // Unauthorized: the token was just replaced.
    default: return false;
  }
}

}  // namespace

struct EventRecorder::Impl {
  Impl(Client& c, const Clock& k, const Log& l, EventRecorderOptions o, Registry* metrics)
      : client(c),
        clock(k),
        log(l),
        options(std::move(o)),
        own_metrics(metrics ? nullptr : std::make_unique<Registry>()),
        dropped_full(Dropped(metrics ? *metrics : *own_metrics, "queue_full")),
        dropped_failed(Dropped(metrics ? *metrics : *own_metrics, "write_failed")),
        dropped_of_object(Dropped(metrics ? *metrics : *own_metrics, "object_limit")),
        dropped_of_namespace(Dropped(metrics ? *metrics : *own_metrics, "namespace_limit")),
        queue(options.queue_limit) {
    options.instance = Cut(options.instance, kMaxWord);
  }

  static Counter& Dropped(Registry& registry, const char* reason) {
    return registry.GetCounter("event_recorder_dropped_total", "Events that were recorded but not written.", {"reason"},
                               {reason});
  }

  void Run();
  void Observe(Occurrence occurrence);
  void Forget(std::list<Series>::iterator series);
  void WriteDirty();
  bool Create(Series& series);  // False: it was given up.
  bool Patch(Series& series);   // The same.
  Status Retry(const std::function<Status()>& attempt);
  bool GiveUp(const Series& series, const Error& error);

  Client& client;
  const Clock& clock;
  const Log& log;
  EventRecorderOptions options;
  const std::unique_ptr<Registry> own_metrics;
  Counter& dropped_full;
  Counter& dropped_failed;
  Counter& dropped_of_object;
  Counter& dropped_of_namespace;
  BoundedQueue<Occurrence> queue;
  std::stop_source closing;  // No more waits between tries.
  std::stop_source abort;    // No more requests.

  // Used only by the recorder's thread.
  std::list<Series> recent;                                                  // Most recent first.
  std::unordered_map<std::string_view, std::list<Series>::iterator> by_key;  // Keys live in `recent`.
  EventLimiter objects{EventLimiter::kOfObject}, namespaces{EventLimiter::kOfNamespace};
  TimePoint write_dirty_at = TimePoint::max();
  std::uint64_t last_unique = 0;

  std::mutex mutex;  // Guards is_done.
  CondVar done;
  bool is_done = false;
  Thread thread;
};

void EventRecorder::Impl::Run() {
  for (;;) {
    std::optional<Occurrence> occurrence = queue.Take(clock, write_dirty_at);
    if (occurrence && abort.stop_requested()) {
      dropped_failed.Add();
    } else if (occurrence) {
      Observe(*std::move(occurrence));
    } else if (queue.is_closed() && queue.size() == 0) {
      break;
    }
    if (clock.Now() >= write_dirty_at) WriteDirty();
  }
  WriteDirty();
  {
    std::lock_guard lock(mutex);
    is_done = true;
  }
  done.NotifyAll();
}

void EventRecorder::Impl::Observe(Occurrence occurrence) {
  while (!recent.empty() && occurrence.at - recent.back().last_at >= kSeriesWindow) Forget(--recent.end());

  std::string key = occurrence.SeriesKey();
  if (const auto found = by_key.find(key); found != by_key.end()) {
    const auto series = found->second;
    recent.splice(recent.begin(), recent, series);
    ++series->count;
    series->last_wall = occurrence.wall;
    series->last_at = occurrence.at;
    if (series->count == 2) {
      if (!Patch(*series)) Forget(series);
    } else {
      series->is_dirty = true;
      write_dirty_at = std::min(write_dirty_at, clock.Now() + kSeriesInterval);
    }
    return;
  }

  if (!objects.Take(occurrence.ObjectText(), clock.Now())) return dropped_of_object.Add();
  if (!namespaces.Take(occurrence.ns, clock.Now())) return dropped_of_namespace.Add();
  if (recent.size() >= kMaxSeries) Forget(--recent.end());
  const WallTime wall = occurrence.wall;
  const TimePoint at = occurrence.at;
  recent.push_front({std::move(key), std::move(occurrence), {}, 1, wall, at, false});
  by_key.emplace(recent.front().key, recent.begin());
  if (!Create(recent.front())) Forget(recent.begin());
}

void EventRecorder::Impl::Forget(std::list<Series>::iterator series) {
  if (series->is_dirty) (void)Patch(*series);
  by_key.erase(series->key);
  recent.erase(series);
}

void EventRecorder::Impl::WriteDirty() {
  write_dirty_at = TimePoint::max();
  for (auto series = recent.begin(); series != recent.end();) {
    const auto next = std::next(series);
    if (series->is_dirty && !Patch(*series)) Forget(series);
    series = next;
  }
}

bool EventRecorder::Impl::Create(Series& series) {
  const Occurrence& first = series.first;
  const auto nanoseconds = std::chrono::duration_cast<Duration>(first.wall.time_since_epoch()).count();
  last_unique = std::max(last_unique + 1, static_cast<std::uint64_t>(nanoseconds));
  // Events about cluster-scoped objects live in "default", as kubectl expects.
  series.event = {first.ns.empty() ? "default" : first.ns, EventName(first.name, last_unique)};
  series.is_dirty = false;

  Json regarding = Json::MakeObject({{"apiVersion", first.api_version}, {"kind", first.kind}, {"name", first.name}});
  if (!first.ns.empty()) regarding["namespace"] = first.ns;
  if (!first.uid.empty()) regarding["uid"] = first.uid;
  if (!first.resource_version.empty()) regarding["resourceVersion"] = first.resource_version;
  const Kind& kind = KindOf<Event>();
  Json event =
      Json::MakeObject({{"apiVersion", kind.ApiVersion()},
                        {"kind", kind.kind},
                        {"metadata", Json::MakeObject({{"name", series.event.name}, {"namespace", series.event.ns}})},
                        {"eventTime", ToMicroText(Time{first.wall})},
                        {"reportingController", options.controller},
                        {"reportingInstance", options.instance},
                        {"type", first.type == EventType::kNormal ? "Normal" : "Warning"},
                        {"reason", first.reason},
                        {"action", first.action},
                        {"regarding", std::move(regarding)},
                        {"note", first.note}});
  if (series.count > 1) event["series"] = SeriesJson(series);

  const Status created = Retry([&]() -> Status {
    auto done_event = client.Create(kind, series.event.ns, event, {}, abort.get_token());
    // Nobody else uses this name: an earlier try succeeded, but its answer was lost.
    if (!done_event && done_event.error().code() != ErrorCode::kAlreadyExists) return std::move(done_event).error();
    return {};
  });
  return created || GiveUp(series, created.error());
}

bool EventRecorder::Impl::Patch(Series& series) {
  series.is_dirty = false;
  const Status patched = Retry([&]() -> Status {
    auto done_event = client.Patch(KindOf<Event>(), series.event, PatchType::kMerge,
                                   Json::MakeObject({{"series", SeriesJson(series)}}), {}, abort.get_token());
    if (!done_event) return std::move(done_event).error();
    return {};
  });
  if (patched) return true;
  // The Event has expired (after an hour by default) or was deleted.
  if (patched.error().code() == ErrorCode::kNotFound) return Create(series);
  return GiveUp(series, patched.error());
}

Status EventRecorder::Impl::Retry(const std::function<Status()>& attempt) {
  Backoff backoff(kRetry, clock.RandomSeed());
  for (int tries = 1;; ++tries) {
    if (abort.stop_requested()) return Error(ErrorCode::kCancelled, "the recorder ends");
    Status done_status = attempt();
    if (done_status || !IsTransient(done_status.error()) || tries == kTries) return done_status;
    const Duration asked = std::min(done_status.error().retry_after().value_or(Duration{}), kLongestRetryAfter);
    if (!WaitFor(clock, std::max(backoff.Next(), asked), closing.get_token())) return done_status;
  }
}

bool EventRecorder::Impl::GiveUp(const Series& series, const Error& error) {
  dropped_failed.Add();
  const Occurrence& first = series.first;
  log.Warn("event not written", {{"object", first.kind + " " + ObjectKey{first.ns, first.name}.ToString()},
                                 {"reason", first.reason},
                                 {"error", error.message()}});
  return false;
}

EventRecorder::EventRecorder(Client& client, const Clock& clock, const Log& log, EventRecorderOptions options,
                             Registry* metrics)
    : impl_(std::make_unique<Impl>(client, clock, log, std::move(options), metrics)) {
  impl_->thread = clock.Spawn([impl = impl_.get()](const std::stop_token&) { impl->Run(); });
}

EventRecorder::~EventRecorder() {
  impl_->queue.Close();
  impl_->closing.request_stop();
  const TimePoint until = impl_->clock.Now() + kCloseTimeout;
  {
    std::unique_lock lock(impl_->mutex);
    while (!impl_->is_done && impl_->clock.Now() < until) impl_->clock.WaitUntil(lock, impl_->done, until);
  }
  impl_->abort.request_stop();
  impl_->thread.Join();
}

void EventRecorder::Record(EventType type, const Kind& kind, const ObjectMeta& regarding, std::string_view reason,
                           std::string_view action, std::string_view note) {
  assert(!reason.empty() && !action.empty() && "the API server wants both");
  const bool is_queued =
      impl_->queue.Put({type, kind.ApiVersion(), std::string(kind.kind), regarding.ns, regarding.name, regarding.uid,
                        regarding.resource_version, Cut(reason, kMaxWord), Cut(action, kMaxWord), Cut(note, kMaxNote),
                        impl_->clock.WallNow(), impl_->clock.Now()});
  if (!is_queued) impl_->dropped_full.Add();
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/reflector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "clientlib/base/wait.h"
#include "clientlib/cache/list_page.h"
#include "clientlib/client/api_status.h"
#include "clientlib/http/json_lines.h"
#include "clientlib/model/json.h"

namespace kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr BackoffPolicy kBackoff{std::chrono::milliseconds(800), seconds(30), 2.0, 1.0};
// While the network fails: as soon as it is back, a watch should be, and to ask again burdens nobody.
constexpr BackoffPolicy kNetworkBackoff{std::chrono::milliseconds(800), std::chrono::milliseconds(1500), 2.0, 1.0};
constexpr Duration kQuietReset = minutes(2);
constexpr Duration kHealthyWatch = seconds(10);  // What breaks then has another cause than the failure before.
constexpr Duration kShortWatch = seconds(1);
// A server may send nothing on a watch until its timeout, not even a bookmark, but then it ends the watch: a stream
// that outlives the timeout by the grace is dead (L13). Only this detects a frozen server or proxy, so the longest
// timeout also bounds how long one can hide changes (L7).
constexpr int kShortestTimeoutSeconds = 90, kLongestTimeoutSeconds = 120;
constexpr int kMostDoublings = 3;  // Of the timeout for initial objects: up to 16 minutes.
constexpr Duration kGraceAfterTimeout = seconds(5);
// Until the mark that ends the initial objects, the server sends without a pause.
constexpr Duration kLongestSilenceBeforeMark = minutes(1);
constexpr int kInternalErrorsBeforeRelist = 4;
constexpr std::size_t kMostRemembered = 10'000;  // Of objects that cannot be read: beyond, they are logged again.
constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";

// True if the server refused the version we asked for, not the request itself (L2).
bool IsVersionRefused(const Error& error) {
  return error.code() == ErrorCode::kGone || error.message().find("Too large resource version") != std::string::npos;
}

// The same error, as kGone if the server refused the version.
Error AsGoneIfRefused(Error error) {
  if (error.code() == ErrorCode::kGone || !IsVersionRefused(error)) return error;
  return Error(ErrorCode::kGone, error.message()).with_http(error.http_status(), error.reason());
}

// True if a watch may resume at the same version after `error` (L5). An internal error of the server may still be about
// that version, so it allows only some tries; a refused token says nothing about the version.
bool MayResume(const Error& error, int tries) {
  switch (error.code()) {
    case ErrorCode::kUnavailable: return error.http_status() != 500 || tries < kInternalErrorsBeforeRelist;
    case ErrorCode::kTooManyRequests:
    case ErrorCode::kTimeout:
    case ErrorCode::kUnauthorized: return true;
    default: return false;
  }
}

struct Bookmark {
  std::string resource_version;
  bool ends_initial_events = false;
};

Result<Bookmark> ReadBookmark(std::string_view object) {
  Result<Json> json = ParseJson(object);
  if (!json) return std::move(json).error();
  const Json* version = json->At({"metadata", "resourceVersion"});
  if (version == nullptr || version->AsString() == nullptr || version->AsString()->empty()) {
    return Error(ErrorCode::kDecode, "bookmark without a resourceVersion");
  }
  Bookmark bookmark{*version->AsString()};
  const Json* mark = json->At({"metadata", "annotations", kInitialEventsEnd});
  bookmark.ends_initial_events = mark != nullptr && mark->AsString() && *mark->AsString() == "true";
  return bookmark;
}

}  // namespace

Reflector::Reflector(Client& client, const Kind& kind, ReflectorOptions options, const Clock& clock, const Log& log,
                     ReflectorSink& sink, std::uint64_t seed)
    : client_(client),
      kind_(kind),
      options_(std::move(options)),
      clock_(clock),
      log_(log),
      sink_(sink),
      random_(seed),
      backoff_(kBackoff, seed),
      network_backoff_(kNetworkBackoff, seed),
      watch_list_works_(options_.use_watch_list) {}

ReflectorStats Reflector::stats() const {
  std::lock_guard lock(stats_mutex_);
  return stats_;
}

// Random, so that the watches of a cluster do not all end at once (L7).
Duration Reflector::WatchTimeout(bool is_initial) {
  const int timeout = std::uniform_int_distribution<int>(kShortestTimeoutSeconds, kLongestTimeoutSeconds)(random_);
  return seconds(is_initial ? timeout << std::min(unfinished_lists_, kMostDoublings) : timeout);
}

void Reflector::NoteFailure(const Error& error) {
  {
    std::lock_guard lock(stats_mutex_);
    ++stats_.failures;
    stats_.last_error = error.message();
  }
  const bool is_unserved = error.code() == ErrorCode::kNotFound;
  if (options_.is_optional && (is_unserved || error.code() == ErrorCode::kForbidden)) {
    const bool is_said = std::exchange(is_refusal_logged_, true);
    if (!is_said && is_unserved) {
      log_.Info("the server does not know the kind; continuing without it", {{"kind", kind_.kind}});
    } else if (!is_said) {
      log_.Warn("not permitted to watch; continuing without it", {{"kind", kind_.kind}, {"error", error.message()}});
    }
    return sink_.OnRefused();
  }
  if (!failure_news_.IsNews(error, clock_.Now())) return;
  log_.Warn("watch failed, trying again", {{"kind", kind_.kind}, {"error", error.message()}});
}

void Reflector::CountBadEvent(const Error& error) {
  {
    std::lock_guard lock(stats_mutex_);
    ++stats_.bad_events;
  }
  log_.Warn("skipped a watch event", {{"kind", kind_.kind}, {"error", error.message()}});
}

void Reflector::CountUnreadable(const UnreadableObject& object) {
  {
    std::lock_guard lock(stats_mutex_);
    ++stats_.bad_events;
  }
  const ObjectKey key = object.identity->metadata.Key();
  if (unreadable_.size() >= kMostRemembered) unreadable_.clear();
  if (!unreadable_.insert(key).second) return;
  log_.Warn("an object cannot be read, its last known state stays",
            {{"kind", kind_.kind}, {"object", key.ToString()}, {"error", object.error.message()}});
}

// What stands for an object whose new state cannot be read: its last known state, since the object exists and nobody
// knows what changed. To announce it as deleted would end its pods; another UID says that the known one is gone (L15).
ConstObject Reflector::LastStateOf(const Object& identity) {
  const ConstObject known = sink_.Known(identity.metadata.Key());
  const std::string& uid = identity.metadata.uid;
  return known && (uid.empty() || known->metadata.uid == uid) ? known : nullptr;
}

void Reflector::Run(std::stop_token stop) {
  TimePoint last_failure = clock_.Now();
  std::optional<TimePoint> last_expiry;
  while (!stop.stop_requested()) {
    const TimePoint started = clock_.Now();
    events_in_watch_ = 0;
    was_open_ = false;
    Status done;
    if (!position_.is_synced && !watch_list_works_) {
      done = ListAll(stop);
    } else {
      done = WatchFrom(stop);
      // A watch that ends at once without an event means a broken proxy, not a timeout (L4).
      if (done && clock_.Now() - started < kShortWatch && events_in_watch_ == 0) {
        done = Error(ErrorCode::kUnavailable, "watch ended at once without an event");
      }
    }
    if (done || stop.stop_requested()) continue;

    const Error& error = done.error();
    if (error.code() == ErrorCode::kGone) {
      // First relist from the last version; only if that is refused too, without one (L2, L3). Do both without a wait,
      // but back off from a server that refuses everything, or each watch right after its list.
      const TimePoint now = clock_.Now();
      const bool is_first =
          position_.is_synced ? !last_expiry || now - *last_expiry > kQuietReset : !position_.is_refused;
      if (position_.is_synced) last_expiry = now;
      position_.is_refused = !position_.is_synced;
      position_.is_synced = false;
      if (is_first) {
        log_.Debug("watch expired, listing again", {{"kind", kind_.kind}, {"error", error.message()}});
        continue;
      }
    }
    const bool was_healthy = was_open_ && clock_.Now() - started >= kHealthyWatch;
    if (was_healthy) failure_news_.Reset();
    NoteFailure(error);
    if (was_healthy || clock_.Now() - last_failure > kQuietReset) {
      backoff_.Reset();
      network_backoff_.Reset();
    }
    last_failure = clock_.Now();
    // To resume costs the server only what has changed; to send all initial objects again may be what it fails of.
    const bool is_cut = error.reason() == kConnectionLost;
    const bool is_unanswered = !was_open_ && error.http_status() == 0 &&
                               (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kTimeout);
    const bool is_of_network = is_cut ? position_.is_synced : is_unanswered;
    if (!is_of_network) network_backoff_.Reset();
    Backoff& backoff = is_of_network ? network_backoff_ : backoff_;
    if (!MayResume(error, backoff_.tries())) position_.is_synced = false;
    WaitFor(clock_, std::max(backoff.Next(), error.retry_after().value_or(Duration{})), stop);
  }
}

Status Reflector::ListAll(std::stop_token stop) {
  {
    std::lock_guard lock(stats_mutex_);
    ++stats_.lists;
  }
  ListOptions list;
  list.label_selector = options_.label_selector;
  list.field_selector = options_.field_selector;
  // "0": served from the watch cache, may be old. Later: not older than what was seen (L1).
  list.resource_version = position_.is_refused                 ? ""
                          : position_.resource_version.empty() ? "0"
                                                               : position_.resource_version;
  std::vector<ConstObject> objects;
  std::string version;
  do {
    Result<ListPage> page = ReadListPage(client_, kind_, options_.ns, list, stop);
    if (!page && IsVersionRefused(page.error()) && !position_.is_refused) {
      position_.is_refused = true;  // Ask again at once, with a quorum read (L2, L11).
      list.resource_version.clear();
      list.continue_token.clear();
      objects.clear();
      page = ReadListPage(client_, kind_, options_.ns, list, stop);
    }
    if (!page) return std::move(page).error().with("list " + std::string(kind_.plural));
    was_open_ = true;
    for (auto& object : page->readable.items) {
      if (!unreadable_.empty()) unreadable_.erase(object->metadata.Key());
      objects.push_back(std::move(object));
    }
    for (const UnreadableObject& object : page->unreadable) {
      CountUnreadable(object);
      if (ConstObject last = LastStateOf(*object.identity)) objects.push_back(std::move(last));
    }
    version = page->readable.resource_version;
    list.continue_token = page->readable.continue_token;
    if (!list.continue_token.empty()) list.resource_version.clear();
  } while (!list.continue_token.empty());
  if (version.empty()) {
    return Error(ErrorCode::kDecode, "list " + std::string(kind_.plural) + ": a list without a resourceVersion");
  }
  position_ = {version, false, true};
  sink_.OnReplace(std::move(objects), version);
  std::lock_guard lock(stats_mutex_);
  stats_.last_error.clear();
  return {};
}

Status Reflector::WatchFrom(std::stop_token stop) {
  {
    std::lock_guard lock(stats_mutex_);
    ++stats_.watches;
  }
  const bool is_initial = !position_.is_synced;
  WatchOptions watch;
  watch.label_selector = options_.label_selector;
  watch.field_selector = options_.field_selector;
  watch.send_initial_events = is_initial;
  watch.resource_version = position_.is_refused ? "" : position_.resource_version;
  watch.timeout = WatchTimeout(is_initial);
  Result<std::unique_ptr<ByteStream>> stream = client_.Watch(kind_, options_.ns, watch, stop);
  if (!stream) {
    const Error& error = stream.error();
    const bool is_unknown = error.code() == ErrorCode::kInvalid || error.code() == ErrorCode::kInvalidArgument;
    if (is_initial && is_unknown) {
      log_.Info("the server does not know watch-list, falling back to list", {{"kind", kind_.kind}});
      watch_list_works_ = false;
      ++events_in_watch_;  // This answer is not the silent end that Run() backs off on.
      return {};
    }
    return AsGoneIfRefused(std::move(stream).error()).with("watch " + std::string(kind_.plural));
  }
  was_open_ = true;
  return ReadStream(**stream, is_initial, clock_.Now() + watch.timeout + kGraceAfterTimeout, stop);
}

Status Reflector::ReadStream(ByteStream& stream, bool is_initial, TimePoint end_of_watch, std::stop_token stop) {
  JsonLines lines;
  std::vector<ConstObject> initial;  // Kept apart until complete, so that readers see one change (L9).
  while (!stop.stop_requested()) {
    const TimePoint until =
        is_initial ? std::min(end_of_watch, clock_.Now() + kLongestSilenceBeforeMark) : end_of_watch;
    Result<std::string> chunk = stream.Read(until, stop);
    if (!chunk) {
      if (chunk.error().code() == ErrorCode::kCancelled) return {};
      if (chunk.error().code() == ErrorCode::kTimeout) {
        const char* why = clock_.Now() < end_of_watch
                              ? "the server fell silent before the initial objects were complete"
                              : "the stream outlived its timeout";
        return Error(ErrorCode::kUnavailable, "watch " + std::string(kind_.plural) + ": " + why);
      }
      return std::move(chunk).error().with("watch " + std::string(kind_.plural));
    }
    if (chunk->empty()) {
      if (!is_initial) return {};
      ++unfinished_lists_;
      return Error(ErrorCode::kUnavailable, "watch ended before the initial objects were complete");
    }
    if (Status pushed = lines.Append(*std::move(chunk)); !pushed) return std::move(pushed).error();
    while (std::optional<std::string_view> line = lines.Next()) {
      if (Status handled = HandleLine(*line, is_initial, initial); !handled) return handled;
    }
  }
  return {};
}

Status Reflector::HandleLine(std::string_view line, bool& is_initial, std::vector<ConstObject>& initial) {
  Result<WatchEvent> event = ReadWatchEvent(line);
  if (!event) {
    CountBadEvent(event.error());
    return {};
  }
  ++events_in_watch_;
  switch (event->type) {
    case WatchEventType::kError:
      return AsGoneIfRefused(ErrorFromStatus(event->object)).with("watch " + std::string(kind_.plural));
    case WatchEventType::kBookmark: {
      Result<Bookmark> bookmark = ReadBookmark(event->object);
      if (!bookmark) {
        CountBadEvent(bookmark.error());
        return {};
      }
      if (is_initial) {
        if (!bookmark->ends_initial_events) return {};
        is_initial = false;
        unfinished_lists_ = 0;
        position_ = {bookmark->resource_version, false, true};
        sink_.OnReplace(std::exchange(initial, {}), bookmark->resource_version);
        std::lock_guard lock(stats_mutex_);
        stats_.last_error.clear();
        return {};
      }
      position_.resource_version = bookmark->resource_version;
      sink_.OnBookmark(bookmark->resource_version);
      return {};
    }
    case WatchEventType::kAdded:
    case WatchEventType::kModified:
    case WatchEventType::kDeleted: break;
    case WatchEventType::kUnknown: CountBadEvent(Error(ErrorCode::kDecode, "unknown event type")); return {};
  }

  Result<std::shared_ptr<Object>> object = DecodeObject(kind_, event->object);
  if (!object) {
    std::shared_ptr<const Object> identity = ReadIdentity(kind_, event->object);
    if (identity) HandleUnreadable(event->type, {std::move(identity), object.error()}, is_initial, initial);
    else CountBadEvent(object.error());
    return {};
  }
  if ((*object)->metadata.resource_version.empty()) {
    return Error(ErrorCode::kDecode, "watch " + std::string(kind_.plural) + ": an object without a resourceVersion");
  }
  {
    std::lock_guard lock(stats_mutex_);
    ++stats_.events;
  }
  if (!unreadable_.empty()) unreadable_.erase((*object)->metadata.Key());
  if (is_initial) {
    // Changes between the initial objects are applied to the list being built.
    const Object& seen = **object;
    std::erase_if(initial, [&](const ConstObject& o) {
      return event->type != WatchEventType::kAdded && o->metadata.name == seen.metadata.name &&
             o->metadata.ns == seen.metadata.ns;
    });
    if (event->type != WatchEventType::kDeleted) initial.push_back(*std::move(object));
    return {};
  }
  position_.resource_version = (*object)->metadata.resource_version;
  if (event->type == WatchEventType::kDeleted) sink_.OnDelete(*std::move(object));
  else sink_.OnPut(*std::move(object));
  return {};
}

void Reflector::HandleUnreadable(WatchEventType type, const UnreadableObject& object, bool is_initial,
                                 std::vector<ConstObject>& initial) {
  const Object& identity = *object.identity;
  const ObjectKey key = identity.metadata.Key();
  const auto is_it = [&](const ConstObject& other) { return other->metadata.Key() == key; };
  if (type == WatchEventType::kDeleted) {  // Of a deletion, the name is all that matters.
    unreadable_.erase(key);
    if (is_initial) {
      std::erase_if(initial, is_it);
      return;
    }
    if (!identity.metadata.resource_version.empty()) position_.resource_version = identity.metadata.resource_version;
    return sink_.OnDelete(object.identity);
  }
  CountUnreadable(object);
  // A sink that is up to date keeps what it has; one that waits for the initial objects needs it among them.
  if (!is_initial || std::ranges::any_of(initial, is_it)) return;
  if (ConstObject last = LastStateOf(identity)) initial.push_back(std::move(last));
}

}  // namespace kube

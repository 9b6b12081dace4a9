// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

constexpr std::size_t kMaxChunk = 64UL << 10;
constexpr Duration kLastBookmark = std::chrono::seconds(2);  // Before the end of the watch.

class WatchStream final : public ByteStream {
 public:
  WatchStream(std::shared_ptr<ServerShared> server, std::shared_ptr<WatchQueue> queue)
      : server_(std::move(server)), queue_(std::move(queue)) {}
  ~WatchStream() override {
    std::lock_guard lock(server_->mutex);
    queue_->Close();
  }
  Result<std::string> Read(TimePoint until, std::stop_token stop) override {
    return queue_->Read(*server_, until, stop);
  }

 private:
  const std::shared_ptr<ServerShared> server_;
  const std::shared_ptr<WatchQueue> queue_;
};

class TextStream final : public ByteStream {
 public:
  explicit TextStream(std::string body) : body_(std::move(body)) {}
  Result<std::string> Read(TimePoint, std::stop_token) override { return std::exchange(body_, {}); }

 private:
  std::string body_;
};

}  // namespace

WatchQueue::WatchQueue(std::shared_ptr<const ResourceInfo> info, WatchSettings settings, const Clock& clock)
    : info_(std::move(info)), settings_(std::move(settings)), clock_(clock), bookmark_due_(NextBookmark()) {}

bool WatchQueue::Selects(const RevisionPtr& revision) const {
  if (!revision) return false;
  if (!settings_.ns.empty() && TextAt(revision->object(), {"metadata", "namespace"}) != settings_.ns) return false;
  return settings_.selector.empty() || settings_.selector.Matches(revision->object());
}

void WatchQueue::Push(const Change& change) {
  if (change.number <= skipped_until_) return;
  const bool was_selected = Selects(change.before);
  const bool is_selected = Selects(change.after);
  if (is_selected) return Add(was_selected ? "MODIFIED" : "ADDED", change.after);
  if (!was_selected) return;
  if (change.last) return Add("DELETED", change.last);
  // The object left the selection: send its last state in it, with the version of the change.
  Json object = change.before->object();
  object["metadata"]["resourceVersion"] = std::to_string(change.number);
  Add("DELETED", std::make_shared<const Revision>(std::move(object), change.number));
}

void WatchQueue::PushAdded(const RevisionPtr& object) {
  if (Selects(object)) Add("ADDED", object);
}

void WatchQueue::PushInitialEnd(std::uint64_t revision) {
  if (settings_.has_bookmarks) Add("BOOKMARK", nullptr, Bookmark(revision, true));
}

void WatchQueue::PushError(const ApiError& error) {
  Add("ERROR", nullptr, ToText(error.ToStatus()));
  End();
}

void WatchQueue::Add(const char* type, RevisionPtr object, std::string text) {
  if (is_ended_ || broken_) return;
  events_.push_back({type, std::move(object), std::move(text)});
  changed_.NotifyAll();
}

void WatchQueue::End() {
  is_ended_ = true;
  changed_.NotifyAll();
}

void WatchQueue::Break(Error error) {
  broken_ = std::move(error);
  events_.clear();
  changed_.NotifyAll();
}

std::string WatchQueue::Bookmark(std::uint64_t revision, bool ends_initial_events) const {
  Json metadata = Json::MakeObject({{"resourceVersion", std::to_string(revision)}});
  if (ends_initial_events) metadata["annotations"] = Json::MakeObject({{"k8s.io/initial-events-end", "true"}});
  return ToText(Json::MakeObject(
      {{"kind", info_->kind}, {"apiVersion", info_->ApiVersion()}, {"metadata", std::move(metadata)}}));
}

TimePoint WatchQueue::NextBookmark() const {
  if (!settings_.has_bookmarks) return TimePoint::max();
  const TimePoint now = clock_.Now();
  const TimePoint regular = now + settings_.bookmark_period;
  const TimePoint last = settings_.end - kLastBookmark;
  return now < last ? std::min(regular, last) : TimePoint::max();
}

Result<std::string> WatchQueue::Read(ServerShared& server, TimePoint until, const std::stop_token& stop) {
  std::stop_callback wake(stop, [&] {
    std::lock_guard lock(server.mutex);
    changed_.NotifyAll();
  });
  std::vector<Event> events;
  {
    std::unique_lock lock(server.mutex);
    for (;;) {
      if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
      if (!events_.empty()) break;
      if (broken_) return *broken_;
      const TimePoint now = clock_.Now();
      if (is_ended_ || now >= settings_.end) return std::string();
      if (now >= bookmark_due_) {
        bookmark_due_ = NextBookmark();
        if (server.revision <= settings_.begin) continue;  // The bookmark would say nothing new.
        Add("BOOKMARK", nullptr, Bookmark(server.revision, false));
        break;
      }
      if (now >= until) return Error(ErrorCode::kTimeout, "no bytes in time");
      clock_.WaitUntil(lock, changed_, std::min({until, settings_.end, bookmark_due_}));
    }
    for (std::size_t size = 0; !events_.empty() && size < kMaxChunk / 4096; ++size) {
      events.push_back(std::move(events_.front()));
      events_.pop_front();
    }
  }
  std::string text;  // Made without the lock: objects never change.
  for (const Event& event : events) {
    text.append(R"({"type":")").append(event.type).append(R"(","object":)");
    text.append(event.object ? event.object->Text() : event.text).append("}\n");
  }
  return text;
}

std::unique_ptr<ByteStream> MakeStream(std::shared_ptr<ServerShared> server, std::shared_ptr<WatchQueue> queue) {
  return std::make_unique<WatchStream>(std::move(server), std::move(queue));
}

std::unique_ptr<ByteStream> MakeStream(std::string body) { return std::make_unique<TextStream>(std::move(body)); }

}  // namespace kube::testing

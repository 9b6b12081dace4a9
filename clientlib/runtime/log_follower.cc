// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/log_follower.h"

#include <algorithm>
#include <utility>

#include "clientlib/base/backoff.h"
#include "clientlib/base/wait.h"
#include "clientlib/model/pod.h"

namespace kube {
namespace {

constexpr BackoffPolicy kBackoff{std::chrono::milliseconds(800), std::chrono::seconds(30), 2.0, 1.0};
constexpr int kLooksBeforeReplacing = 5;
// limitBytes of one stream: bounds what waits for a slow sink.
constexpr std::int64_t kMostBytes = 4 << 20;

constexpr std::size_t kLongestTime = 40;  // "2026-01-02T03:04:05.678901234+00:00" and some.

// Drops what precedes a stream's first line with a time. Runtimes cut long lines into parts, and the kubelet compares
// sinceTime with each part: of a line that began a second earlier, and was read then, the rest comes without a time.
class StreamBegin {
 public:
  void StartStream(bool may_begin_within_a_line) {
    is_dropping_ = may_begin_within_a_line;
    held_.clear();
  }

  // Takes the next `bytes` of the stream; returns what to pass on.
  std::string Filter(std::string bytes) {
    if (!is_dropping_) return bytes;
    held_ += bytes;
    for (;;) {
      const std::size_t end_of_time = held_.find_first_of(" \n");
      if (end_of_time == std::string::npos && held_.size() < kLongestTime) return {};
      if (end_of_time <= kLongestTime && ParseTime(held_.substr(0, end_of_time))) {
        is_dropping_ = false;
        return std::exchange(held_, {});
      }
      const std::size_t end_of_line = held_.find('\n');
      if (end_of_line == std::string::npos) {
        held_.resize(std::min(held_.size(), kLongestTime));  // Enough to see that it is no time.
        return {};
      }
      held_.erase(0, end_of_line + 1);
    }
  }

 private:
  bool is_dropping_ = false;
  std::string held_;
};

// The time of the newest line whose time has arrived completely. Keeps only bytes that may be part of a time.
class LastLine {
 public:
  void StartStream() {
    begin_.clear();
    is_in_text_ = false;
  }

  void Feed(std::string_view bytes) {
    while (!bytes.empty()) {
      if (is_in_text_) {
        const std::size_t end = bytes.find('\n');
        if (end == std::string_view::npos) return;
        bytes.remove_prefix(end + 1);
        is_in_text_ = false;
        continue;
      }
      const std::size_t take = std::min(bytes.find_first_of(" \n"), kLongestTime - begin_.size());
      begin_.append(bytes.substr(0, take));
      bytes.remove_prefix(std::min(take, bytes.size()));
      if (bytes.empty() && begin_.size() < kLongestTime) return;
      if (Result<Time> time = ParseTime(begin_)) time_ = *time;
      begin_.clear();
      is_in_text_ = true;
    }
  }

  const std::optional<Time>& time() const { return time_; }

 private:
  std::string begin_;  // Of a line whose time is incomplete.
  bool is_in_text_ = false;
  std::optional<Time> time_;
};

// What the pod's status says of the container.
struct Look {
  bool is_gone = false;    // The pod is deleted or replaced.
  bool has_ended = false;  // For good: it cannot be restarted.
};

bool HasEnded(const Pod& pod, std::string_view container) {
  if (HasEnded(pod)) return true;
  if (!pod.metadata.is_being_deleted()) return false;
  // The kubelet may restart a terminated container, but not once its pod is being deleted.
  for (const auto* const list : {&pod.status.container_statuses, &pod.status.init_container_statuses}) {
    for (const ContainerStatus& status : *list) {
      const bool is_it = container.empty() ? list == &pod.status.container_statuses : status.name == container;
      if (is_it) return static_cast<bool>(status.state.terminated);
    }
  }
  return false;
}

}  // namespace

std::string_view ToString(LogState state) {
  switch (state) {
    case LogState::kWaiting: return "Waiting";
    case LogState::kFollowing: return "Following";
    case LogState::kEnded: return "Ended";
    case LogState::kRefused: return "Refused";
  }
  return "";
}

// The work of the thread.
class LogFollower::Run {
 public:
  explicit Run(LogFollower& follower)
      : client_(follower.client_),
        options_(follower.options_),
        clock_(follower.clock_),
        sink_(follower.sink_),
        busy_until_(follower.busy_until_),
        backoff_(kBackoff, clock_.RandomSeed()) {}

  void UntilEnd(const std::stop_token& stop) {
    if (options_.not_before > clock_.Now()) {
      busy_until_ = options_.not_before;
      WaitFor(clock_, options_.not_before - clock_.Now(), stop);
    }
    while (!stop.stop_requested()) {
      Result<Look> look = LookAtPod(stop);
      if (look && look->is_gone) return Tell(LogState::kEnded, "the pod is gone");
      const Result<bool> read = look ? Read(look->has_ended, stop) : std::move(look).error();
      if (stop.stop_requested()) return;
      if (read && !*read) continue;
      // Only a stream that was opened after the container's end, and read to its own end, has the whole log.
      if (read && look->has_ended) return Tell(LogState::kEnded, "the container has ended");
      Duration wait = backoff_.Next();
      if (!read) {
        const std::optional<Duration> asked = read.error().retry_after();
        if (asked) busy_until_ = clock_.Now() + *asked;
        wait = std::max(wait, asked.value_or(Duration{}));
        TellFailure(read.error());
      }
      WaitFor(clock_, wait, stop);
    }
  }

 private:
  Result<Look> LookAtPod(const std::stop_token& stop) {
    Result<std::shared_ptr<Pod>> pod = client_.Get<Pod>(options_.pod, stop);
    if (pod) {
      const bool is_another = !options_.uid.empty() && (*pod)->metadata.uid != options_.uid;
      return Look{is_another, HasEnded(**pod, options_.container)};
    }
    if (pod.error().code() == ErrorCode::kNotFound) return Look{.is_gone = true};
    return std::move(pod).error().with("get pod " + options_.pod.ToString());
  }

  // Reads one stream. True: to its end; false: another stream must continue.
  Result<bool> Read(bool has_ended, const std::stop_token& stop) {
    PodLogOptions log;
    log.container = options_.container;
    log.follow = !has_ended;
    log.timestamps = true;
    log.since = last_line_.time() ? last_line_.time() : options_.since;
    if (!last_line_.time()) log.tail_lines = options_.tail_lines;
    log.limit_bytes = most_bytes_;
    log.timeout = options_.look_after;
    Result<std::unique_ptr<ByteStream>> opened = client_.PodLog(options_.pod, log, stop);
    if (!opened) {
      // The container has written nothing yet: the kubelet sends its headers with the first line.
      const bool is_quiet = opened.error().code() == ErrorCode::kTimeout && opened.error().http_status() == 0;
      if (!is_quiet || has_ended) return std::move(opened).error();
      Tell(LogState::kFollowing, "");
      return false;
    }
    Tell(LogState::kFollowing, "");
    stream_begin_.StartStream(log.since.has_value());
    last_line_.StartStream();
    sink_.OnStart(log.since);
    return ReadStream(**opened, log, stop);
  }

  Result<bool> ReadStream(ByteStream& stream, const PodLogOptions& log, const std::stop_token& stop) {
    std::int64_t count = 0;
    for (int looks = 0;;) {
      Result<std::string> bytes = stream.Read(clock_.Now() + options_.look_after, stop);
      if (bytes) {
        if (bytes->empty()) {
          const bool is_cut_off = count >= most_bytes_;
          if (is_cut_off) ChooseLimit(log.since);
          return !is_cut_off;
        }
        looks = 0;
        count += static_cast<std::int64_t>(bytes->size());
        const std::string text = stream_begin_.Filter(*std::move(bytes));
        // Repeated lines are no progress: while an ended container may restart, each stream repeats its last second.
        const std::optional<Time> before = last_line_.time();
        last_line_.Feed(text);
        if (last_line_.time() != before) backoff_.Reset();
        if (!text.empty()) sink_.OnBytes(text);
        continue;
      }
      if (bytes.error().code() != ErrorCode::kTimeout) return std::move(bytes).error().with(Name());
      if (!log.follow || ++looks == kLooksBeforeReplacing) {
        return Error(ErrorCode::kTimeout, "the server went silent").with(Name());
      }
      const Result<Look> look = LookAtPod(stop);
      if (look && (look->is_gone || look->has_ended)) return false;
    }
  }

  // For the stream after one that was cut off at the limit. Doubles it if that stream got no further than its first
  // second.
  void ChooseLimit(const std::optional<Time>& since) {
    const bool got_on = last_line_.time() && (!since || ToText(*last_line_.time()) != ToText(*since));
    most_bytes_ = got_on ? kMostBytes : 2 * most_bytes_;
  }

  std::string Name() const { return "log of pod " + options_.pod.ToString(); }

  void TellFailure(const Error& error) {
    const bool is_refused = error.code() == ErrorCode::kForbidden ||
                            ((error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kInvalid) &&
                             !IsWaitingToStart(error));
    Tell(is_refused ? LogState::kRefused : LogState::kWaiting, error.message());
  }

  void Tell(LogState state, const std::string& reason) {
    if (told_ && state == told_->first && reason == told_->second) return;
    told_.emplace(state, reason);
    sink_.OnState(state, reason);
  }

  Client& client_;
  const LogFollowerOptions& options_;
  const Clock& clock_;
  LogSink& sink_;
  std::atomic<TimePoint>& busy_until_;
  Backoff backoff_;
  StreamBegin stream_begin_;
  LastLine last_line_;
  std::int64_t most_bytes_ = kMostBytes;
  std::optional<std::pair<LogState, std::string>> told_;
};

LogFollower::LogFollower(Client& client, LogFollowerOptions options, const Clock& clock, LogSink& sink)
    : client_(client), options_(std::move(options)), clock_(clock), sink_(sink) {}

LogFollower::~LogFollower() = default;  // Joins thread_ first: it is the last member.

void LogFollower::Start() {
  thread_ = clock_.Spawn([this](const std::stop_token& stop) { Run(*this).UntilEnd(stop); });
}

void LogFollower::RequestStop() { thread_.RequestStop(); }

}  // namespace kube

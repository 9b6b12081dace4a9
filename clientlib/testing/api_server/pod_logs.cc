// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/api_server/pod_logs.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "clientlib/model/time.h"
#include "clientlib/testing/api_server/json_access.h"

namespace kube::testing {
namespace {

constexpr std::size_t kMaxChunk = 64UL << 10;

struct Selection {
  bool follow = false;
  bool has_timestamps = false;
  std::optional<Time> since = {};
  std::optional<std::int64_t> tail = {};  // Of records, as the kubelet counts.
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
};

// The kubelet writes all nine digits.
std::string TimeText(WallTime at) {
  std::string text = ToText(Time{at});
  const auto fraction = std::chrono::nanoseconds(at.time_since_epoch()) % std::chrono::seconds(1);
  const std::string digits = std::to_string(fraction.count());
  text.pop_back();
  return text.append(".").append(9 - digits.size(), '0').append(digits).append("Z");
}

// A reader's position in a log.
class Cursor {
 public:
  Cursor(const ContainerLog& log, Selection selection)
      : selection_(std::move(selection)), next_(log.first), breaks_(log.breaks) {
    if (!selection_.tail) return;
    const auto records = static_cast<std::int64_t>(log.records.size());
    next_ += static_cast<std::uint64_t>(std::max<std::int64_t>(records - *selection_.tail, 0));
  }

  // Takes what can be read now, up to about `limit` bytes.
  std::string Take(const ContainerLog& log, std::size_t limit) {
    std::string text;
    next_ = std::max(next_, log.first);  // A reader that was too slow goes on with what is left.
    for (; next_ - log.first < log.records.size() && text.size() < limit && !is_full(); ++next_) {
      const ContainerLog::Record& record = log.records[next_ - log.first];
      const bool begins_line = std::exchange(begins_line_, record.text.ends_with('\n'));
      if (selection_.since && record.at < selection_.since->value) continue;
      std::string piece;
      if (selection_.has_timestamps && begins_line) piece = TimeText(record.at) + " ";
      piece += record.text;
      if (static_cast<std::int64_t>(piece.size()) > selection_.bytes) {
        piece.resize(static_cast<std::size_t>(selection_.bytes));
      }
      selection_.bytes -= static_cast<std::int64_t>(piece.size());
      text += piece;
    }
    return text;
  }
  bool is_full() const { return selection_.bytes <= 0; }
  bool is_broken(const ContainerLog& log) const { return breaks_ != log.breaks; }

 private:
  Selection selection_;
  std::uint64_t next_;
  const std::uint64_t breaks_;
  bool begins_line_ = true;
};

class LogStream final : public ByteStream {
 public:
  LogStream(std::shared_ptr<ServerShared> server, std::shared_ptr<ContainerLog> log, Cursor cursor, const Clock& clock)
      : server_(std::move(server)), log_(std::move(log)), cursor_(std::move(cursor)), clock_(clock) {}

  Result<std::string> Read(TimePoint until, std::stop_token stop) override {
    std::stop_callback wake(stop, [&] {
      std::lock_guard lock(server_->mutex);
      log_->changed.NotifyAll();
    });
    std::unique_lock lock(server_->mutex);
    for (;;) {
      if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
      if (cursor_.is_broken(*log_)) return Error(ErrorCode::kUnavailable, "connection reset");
      std::string text = cursor_.Take(*log_, kMaxChunk);
      if (!text.empty() || log_->is_ended || cursor_.is_full()) return text;
      if (clock_.Now() >= until) return Error(ErrorCode::kTimeout, "no bytes in time");
      clock_.WaitUntil(lock, log_->changed, until);
    }
  }

 private:
  const std::shared_ptr<ServerShared> server_;
  const std::shared_ptr<ContainerLog> log_;
  Cursor cursor_;
  const Clock& clock_;
};

// Nothing if it is missing; 400 if it is no number.
Outcome<std::optional<std::int64_t>> NumberOf(const Target& target, std::string_view name) {
  const std::string_view text = target.Query(name);
  if (text.empty()) return std::optional<std::int64_t>();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return BadRequest(Concat({"strconv.ParseInt: parsing \"", text, "\": invalid syntax"}));
  }
  return std::optional(number);
}

Outcome<Selection> SelectionOf(const Target& target, std::string_view pod) {
  Selection selection{.follow = target.IsTrue("follow"), .has_timestamps = target.IsTrue("timestamps")};
  if (const std::string_view since = target.Query("sinceTime"); !since.empty()) {
    const Result<Time> time = ParseTime(since);
    if (!time) return BadRequest(time.error().message());
    selection.since = Time{std::chrono::floor<std::chrono::seconds>(time->value)};
  }
  Outcome<std::optional<std::int64_t>> tail = NumberOf(target, "tailLines");
  if (!tail) return tail.error();
  Outcome<std::optional<std::int64_t>> bytes = NumberOf(target, "limitBytes");
  if (!bytes) return bytes.error();
  std::vector<FieldError> errors;
  if (tail->value_or(0) < 0) {
    errors.push_back(InvalidField("tailLines", std::to_string(**tail), "must be greater than or equal to 0"));
  }
  if (bytes->value_or(1) < 1) {
    errors.push_back(InvalidField("limitBytes", std::to_string(**bytes), "must be greater than 0"));
  }
  if (!errors.empty()) return Invalid("", "PodLogOptions", pod, errors);
  selection.tail = *tail;
  if (*bytes) selection.bytes = **bytes;
  return selection;
}

const Json* FindNamed(const Json* list, std::string_view name) {
  const Json::Array* const items = list ? list->AsArray() : nullptr;
  if (!items) return nullptr;
  const auto found =
      std::find_if(items->begin(), items->end(), [&](const Json& item) { return TextAt(item, {"name"}) == name; });
  return found == items->end() ? nullptr : &*found;
}

const Json* StatusOf(const Json& pod, std::string_view container) {
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    if (const Json* const found = FindNamed(pod.At({"status", list}), container)) return found;
  }
  return nullptr;
}

// The container that the request is about, as pkg/registry/core/pod/strategy.go finds it.
Outcome<std::string> ContainerOf(const Json& pod, std::string_view wanted) {
  std::string names;
  std::size_t count = 0;
  for (const std::string_view list : {"initContainers", "containers"}) {
    const Json* const containers = pod.At({"spec", list});
    if (!containers || !containers->AsArray()) continue;
    for (const Json& container : *containers->AsArray()) {
      const std::string_view name = TextAt(container, {"name"});
      if (!wanted.empty() && name == wanted) return std::string(wanted);
      names.append(names.empty() ? "" : " ").append(name);
      count += list == "containers";
      if (wanted.empty() && list == "containers" && containers->AsArray()->size() == 1) return std::string(name);
    }
  }
  if (!wanted.empty()) return BadRequest(Concat({"container ", wanted, " is not valid for pod ", NameOf(pod)}));
  return BadRequest(Concat({"a container name must be specified for pod ", NameOf(pod),
                            count ? ", choose one of: [" : "", count ? names : "", count ? "]" : ""}));
}

// The kubelet's check (validateContainerLogStatus in pkg/kubelet/kubelet_pods.go).
Check HasStarted(const Json& pod, std::string_view container) {
  const Json* const status = StatusOf(pod, container);
  const std::string prefix = Concat({"container \"", container, "\" in pod \"", NameOf(pod), "\" is "});
  if (!status) return BadRequest(prefix + "not available");
  if (status->At({"state", "running"}) || status->At({"state", "terminated"}) ||
      status->At({"lastState", "terminated"})) {
    return Done{};
  }
  if (!status->At({"state", "waiting"})) return BadRequest(prefix + "waiting to start - no logs yet");
  return BadRequest(prefix + "waiting to start: " + std::string(TextAt(*status, {"state", "waiting", "reason"})));
}

}  // namespace

PodLogs::PodLogs(Storage& storage, const Clock& clock) : storage_(storage), clock_(clock) {
  storage_.AddObserver([this](const ServerChange& change) {
    if (change.resource == "pods") OnPod(change);
  });
}

PodLogs::LogPtr PodLogs::LogOf(const ObjectKey& pod, std::string_view container) {
  LogPtr& log = logs_[pod][std::string(container)];
  if (!log) log = std::make_shared<ContainerLog>();
  return log;
}

// The log of an ended container ends; a container that starts again has a new log.
void PodLogs::OnPod(const ServerChange& change) {
  const ObjectKey key = KeyOf(change.after ? *change.after : *change.before);
  const auto of_pod = logs_.find(key);
  if (of_pod == logs_.end()) return;
  for (auto& [container, log] : of_pod->second) {
    const Json* const status = change.after ? StatusOf(*change.after, container) : nullptr;
    const bool is_ended = !change.after || (status && status->At({"state", "terminated"}));
    if (is_ended == log->is_ended) continue;
    if (is_ended) {
      log->is_ended = true;
      log->changed.NotifyAll();
    } else {
      log = std::make_shared<ContainerLog>();
    }
  }
  if (!change.after) logs_.erase(of_pod);
}

void PodLogs::Append(const ObjectKey& pod, std::string_view container, WallTime at, std::string_view text) {
  const Table* const pods = storage_.Find("pods");
  if (!pods || !storage_.Get(*pods, pod)) return;
  const LogPtr log = LogOf(pod, container);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    log->records.push_back({at, std::string(text.substr(0, end))});
    text.remove_prefix(end);
  }
  log->changed.NotifyAll();
}

void PodLogs::Rotate(const ObjectKey& pod, std::string_view container, std::size_t records) {
  const auto of_pod = logs_.find(pod);
  if (of_pod == logs_.end()) return;
  const auto log = of_pod->second.find(container);
  if (log == of_pod->second.end()) return;
  for (; log->second->records.size() > records; ++log->second->first) log->second->records.pop_front();
}

void PodLogs::BreakStreams() {
  for (auto& [pod, logs] : logs_) {
    for (auto& [container, log] : logs) {
      ++log->breaks;
      log->changed.NotifyAll();
    }
  }
}

Outcome<StreamResponse> PodLogs::Answer(Table& pods, const ObjectKey& key, const HttpRequest& request,
                                        const Target& target) {
  if (request.method != "GET") return MethodNotAllowed();
  Outcome<Selection> selection = SelectionOf(target, key.name);
  if (!selection) return selection.error();
  const RevisionPtr found = storage_.Get(pods, key);
  if (!found) return NotFound(*pods.info, key.name);
  const Json& pod = found->object();
  Outcome<std::string> container = ContainerOf(pod, target.Query("container"));
  if (!container) return container.error();
  if (TextAt(pod, {"spec", "nodeName"}).empty()) return StreamResponse{HttpResponse{204, {}, {}}, nullptr};
  if (Check started = HasStarted(pod, *container); !started) return started.error();

  const LogPtr log = LogOf(key, *container);
  const Json* const status = StatusOf(pod, *container);
  log->is_ended = status && status->At({"state", "terminated"});
  Cursor cursor(*log, *selection);
  HttpResponse head{200, {{"content-type", "text/plain"}}, {}};
  if (selection->follow) {
    return StreamResponse{std::move(head),
                          std::make_unique<LogStream>(storage_.shared(), log, std::move(cursor), clock_)};
  }
  head.body = cursor.Take(*log, std::numeric_limits<std::size_t>::max());
  return StreamResponse{std::move(head), nullptr};
}

}  // namespace kube::testing

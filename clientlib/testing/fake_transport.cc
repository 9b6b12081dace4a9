// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/fake_transport.h"

#include <algorithm>
#include <optional>

#include "clientlib/base/wait.h"
#include "clientlib/model/json.h"

namespace kube::testing {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

}  // namespace

struct FakeStream::State {
  mutable std::mutex mutex;  // Guards everything below.
  CondVar changed;
  std::deque<std::string> pushed;
  bool is_ended = false, is_opened = false, is_closed = false, is_reading = false;
  std::optional<Error> broken;

  template <typename Change>
  void Set(Change change) {
    {
      std::lock_guard lock(mutex);
      change();
    }
    changed.NotifyAll();
  }
  template <typename Predicate>
  bool Await(Predicate holds) {
    std::unique_lock lock(mutex);
    return changed.variable().wait_for(lock, kPatience, holds);
  }
};

class FakeStream::Reader final : public ByteStream {
 public:
  Reader(std::shared_ptr<State> state, const Clock& clock) : state_(std::move(state)), clock_(clock) {
    state_->Set([this] { state_->is_opened = true; });
  }
  ~Reader() override {
    state_->Set([this] { state_->is_closed = true; });
  }

  Result<std::string> Read(TimePoint until, std::stop_token stop) override {
    std::stop_callback wake(stop, [this] { state_->Set([] {}); });
    std::unique_lock lock(state_->mutex);
    for (;;) {
      if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
      if (!state_->pushed.empty()) {
        std::string bytes = std::move(state_->pushed.front());
        state_->pushed.pop_front();
        return bytes;
      }
      if (state_->broken) return *state_->broken;
      if (state_->is_ended) return std::string();
      if (clock_.Now() >= until) return Error(ErrorCode::kTimeout, "no bytes in time");
      state_->is_reading = true;
      state_->changed.NotifyAll();
      clock_.WaitUntil(lock, state_->changed, until);
      state_->is_reading = false;
    }
  }

 private:
  const std::shared_ptr<State> state_;
  const Clock& clock_;
};

FakeStream::FakeStream() : state_(std::make_shared<State>()) {}

void FakeStream::Push(std::string bytes) {
  state_->Set([&] { state_->pushed.push_back(std::move(bytes)); });
}

void FakeStream::End() {
  state_->Set([this] { state_->is_ended = true; });
}

void FakeStream::Break(Error error) {
  state_->Set([&] { state_->broken = std::move(error); });
}

bool FakeStream::AwaitDrained() const {
  return state_->Await([this] { return (state_->pushed.empty() && state_->is_reading) || state_->is_closed; });
}

bool FakeStream::AwaitOpened() const {
  return state_->Await([this] { return state_->is_opened; });
}

bool FakeStream::AwaitClosed() const {
  return state_->Await([this] { return state_->is_closed; });
}

void FakeTransport::Handle(std::string method, std::string target_prefix, Handler handler) {
  std::lock_guard lock(mutex_);
  handlers_.push_back({std::move(method), std::move(target_prefix), std::move(handler)});
}

void FakeTransport::Expect(std::string method, std::string target_prefix, Result<HttpResponse> answer) {
  std::lock_guard lock(mutex_);
  expected_.push_back({std::move(method), std::move(target_prefix), std::move(answer)});
}

FakeStream FakeTransport::ExpectStream(std::string target_prefix) {
  FakeStream stream;
  std::lock_guard lock(mutex_);
  expected_.push_back({"GET", std::move(target_prefix), stream});
  return stream;
}

void FakeTransport::ExpectHang(std::string method, std::string target_prefix) {
  std::lock_guard lock(mutex_);
  expected_.push_back({std::move(method), std::move(target_prefix), HangForever{}});
}

FakeTransport::Answer FakeTransport::Find(const HttpRequest& request) {
  std::unique_lock lock(mutex_);
  requests_.push_back(request);
  requested_.notify_all();
  const auto fits = [&](const Rule& rule) { return rule.Fits(request); };
  if (const auto it = std::find_if(expected_.begin(), expected_.end(), fits); it != expected_.end()) {
    Answer answer = std::move(it->answer);
    expected_.erase(it);
    return answer;
  }
  const Rule* best = nullptr;
  for (const Rule& rule : handlers_) {
    if (fits(rule) && (!best || rule.target_prefix.size() > best->target_prefix.size())) best = &rule;
  }
  if (best) return best->answer;
  return Error(ErrorCode::kInternal, "the test has no answer to " + request.method + " " + request.target);
}

Result<HttpResponse> FakeTransport::Respond(const Answer& answer, const HttpRequest& request,
                                            const std::stop_token& stop) const {
  if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
  if (const auto* fixed = std::get_if<Result<HttpResponse>>(&answer)) return *fixed;
  if (const auto* handler = std::get_if<Handler>(&answer)) return (*handler)(request, stop);
  if (std::holds_alternative<HangForever>(answer)) return Hang(request, stop);
  return Error(ErrorCode::kInternal, "the test has a stream for " + request.target + ", which was not opened as one");
}

Result<HttpResponse> FakeTransport::Send(const HttpRequest& request, std::stop_token stop) {
  return Respond(Find(request), request, stop);
}

Result<StreamResponse> FakeTransport::Open(const HttpRequest& request, std::stop_token stop) {
  const Answer answer = Find(request);
  if (const auto* stream = std::get_if<FakeStream>(&answer)) {
    if (stop.stop_requested()) return Error(ErrorCode::kCancelled, "stopped");
    return StreamResponse{{200, {}, {}}, std::make_unique<FakeStream::Reader>(stream->state_, clock_)};
  }
  Result<HttpResponse> response = Respond(answer, request, stop);
  if (!response) return std::move(response).error();
  if (response->status != 200) return StreamResponse{*std::move(response), nullptr};
  FakeStream stream;
  if (!response->body.empty()) stream.Push(std::move(response->body));
  stream.End();
  response->body.clear();
  return StreamResponse{*std::move(response), std::make_unique<FakeStream::Reader>(stream.state_, clock_)};
}

std::vector<HttpRequest> FakeTransport::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

bool FakeTransport::AwaitRequests(std::size_t count) const {
  std::unique_lock lock(mutex_);
  return requested_.wait_for(lock, kPatience, [&] { return requests_.size() >= count; });
}

bool FakeTransport::is_exhausted() const {
  std::lock_guard lock(mutex_);
  return expected_.empty();
}

Result<HttpResponse> FakeTransport::Hang(const HttpRequest& request, const std::stop_token& stop) const {
  if (!WaitFor(clock_, request.timeout, stop)) return Error(ErrorCode::kCancelled, "stopped");
  return Error(ErrorCode::kTimeout, "no answer in time");
}

HttpResponse JsonAnswer(int status, std::string body) {
  return {status, {{"content-type", "application/json"}}, std::move(body)};
}

HttpResponse StatusAnswer(int status, std::string_view reason, std::string_view message) {
  return JsonAnswer(status, ToText(Json::MakeObject({{"kind", "Status"},
                                                     {"apiVersion", "v1"},
                                                     {"status", "Failure"},
                                                     {"message", message},
                                                     {"reason", reason},
                                                     {"code", status}})));
}

}  // namespace kube::testing

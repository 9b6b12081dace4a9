// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/extender_port.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <utility>

#include "clientlib/base/clock.h"

namespace grus::testing {
namespace {

using namespace std::chrono_literals;
using kube::Error;
using kube::ErrorCode;

constexpr kube::Duration kFastest = 200us, kSlowest = 12ms;  // One way.
constexpr kube::Duration kTimeout = 5s;                      // httpTimeout of the scheduler's configuration.
constexpr int kThreads = 8;

Error Unavailable(std::string why) { return {ErrorCode::kUnavailable, std::move(why)}; }

}  // namespace

struct ExtenderPort::Pending {
  std::string verb, body;
  std::function<void(Answer)> done;  // Null: it was called.
};

// To one process.
struct ExtenderPort::Line {
  std::mutex mutex;  // For waits.
  kube::CondVar changed;
  std::deque<PendingPtr> calls;
  std::set<PendingPtr> in_hand;
  std::function<bool()> leads;
  bool is_cut = false;
};

void ExtenderPort::Finish(const PendingPtr& call, Answer answer) {
  if (!call->done) return;
  std::exchange(call->done, nullptr)(std::move(answer));
}

void ExtenderPort::Call(std::string verb, std::string body, std::function<void(Answer)> done) {
  const auto call = std::make_shared<Pending>(Pending{std::move(verb), std::move(body), std::move(done)});
  simulation_.After(simulation_.Between(kFastest, kSlowest), [this, call] { Deliver(call); });
  simulation_.After(kTimeout, [call] { Finish(call, Error(ErrorCode::kUnavailable, "no answer in time")); });
}

// The one that leads, which the Service names a moment late.
std::shared_ptr<ExtenderPort::Line> ExtenderPort::Choose() {
  if (lines_.empty()) return nullptr;
  const auto leader = std::ranges::find_if(lines_, [](const auto& line) { return line->leads(); });
  if (leader != lines_.end() && !simulation_.OneIn(8)) return *leader;
  return lines_[simulation_.random()() % lines_.size()];
}

void ExtenderPort::Deliver(const PendingPtr& call) {
  if (stand_in_) return Finish(call, stand_in_(call->verb, call->body));
  const std::shared_ptr<Line> line = Choose();
  if (!line) return Finish(call, Unavailable("connection refused"));
  line->calls.push_back(call);
  line->changed.NotifyAll();
}

void ExtenderPort::Serve(const Server& server, std::stop_token stop) {
  const auto line = std::make_shared<Line>();
  line->leads = server.leads;
  lines_.push_back(line);
  {
    std::vector<kube::Thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.push_back(simulation_.Spawn([&](const std::stop_token&) { AnswerSome(server, line, stop); }));
    }
    const std::stop_callback end(stop, [this, line] {
      line->is_cut = true;
      std::erase(lines_, line);
      line->changed.NotifyAll();
      for (const PendingPtr& call : line->calls) line->in_hand.insert(call);
      line->calls.clear();
      for (const PendingPtr& call : line->in_hand) {
        simulation_.After({}, [call] { Finish(call, Unavailable("connection reset")); });
      }
    });
    for (kube::Thread& thread : threads) thread.Join();
  }
}

void ExtenderPort::AnswerSome(const Server& server, const std::shared_ptr<Line>& line, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (line->calls.empty()) {
      std::unique_lock lock(line->mutex);
      simulation_.WaitUntil(lock, line->changed, kube::TimePoint::max());
      continue;
    }
    const PendingPtr call = line->calls.front();
    line->calls.pop_front();
    line->in_hand.insert(call);
    const Answer answer = !server.is_ready()                        ? Unavailable("caches are not synced")
                          : call->verb == "bind" && !server.leads() ? Unavailable("this replica does not lead")
                                                                    : server.answer(call->verb, call->body);
    // Of a process that died meanwhile nothing is heard.
    simulation_.After(simulation_.Between(kFastest, kSlowest), [line, call, answer] {
      if (line->in_hand.erase(call) > 0 && !line->is_cut) Finish(call, answer);
    });
  }
}

}  // namespace grus::testing

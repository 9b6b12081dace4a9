// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/faults/faulty_network.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "clientlib/base/wait.h"
#include "clientlib/http/json_lines.h"
#include "clientlib/testing/fake_transport.h"
#include "clientlib/testing/faults/refusal.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFastest = 200us, kSlowest = 12ms;  // One way.
constexpr Duration kFrozen = 40s, kLeaseDuration = 15s;

Error Refused() { return {ErrorCode::kUnavailable, "connection refused"}; }
Error Lost() { return Error(ErrorCode::kUnavailable, "connection reset").with_http(0, std::string(kConnectionLost)); }
Error Dead() { return {ErrorCode::kCancelled, "the process is dead"}; }

bool IsLease(const HttpRequest& request) { return request.target.find("/leases") != std::string::npos; }
bool IsLog(const HttpRequest& request) {
  return std::string_view(request.target).substr(0, request.target.find('?')).ends_with("/log");
}
// Faults of watches that no server causes in a log: wrong content, and errors about versions. Nor is a log hidden for
// five minutes: its reader may rightly believe that the program is silent.
bool SparesLogs(const Fault& fault) {
  const std::string_view name = fault.kind->name;
  return name == "open-gone" || name == "open-no-watch-list" || name == "watch-gone" || name == "watch-error" ||
         name == "watch-unknown" || name == "watch-twice" || name == "watch-hidden" || name.ends_with("-garbage") ||
         name.ends_with("-html");
}
bool IsEvent(const HttpRequest& request) { return request.target.find("/events") != std::string::npos; }

std::string TextAt(std::string_view json, std::initializer_list<std::string_view> path) {
  const Result<Json> parsed = ParseJson(json);
  const Json* found = parsed ? parsed->At(path) : nullptr;
  return found && found->AsString() ? *found->AsString() : std::string();
}

// What a request asks for: "PATCH /api/v1/namespaces/default/pods/p", "POST /api/v1/namespaces/default/pods p", "GET
// /api/v1/pods labelSelector=a". A Retry-After for one does not hold for another.
std::string PathOf(const HttpRequest& request) {
  const std::string& target = request.target;
  std::string path = request.method + " " + target.substr(0, target.find('?'));
  if (request.method == "POST") path += " " + TextAt(request.body, {"metadata", "name"});
  for (const std::string_view selector : {"labelSelector=", "fieldSelector="}) {
    const std::size_t at = target.find(selector);
    if (at != std::string::npos) path += " " + target.substr(at, target.find('&', at) - at);
  }
  return path;
}

}  // namespace

class FaultyNetwork::Stream final : public ByteStream {
 public:
  Stream(FaultyNetwork& network, std::shared_ptr<const bool> is_dead, std::unique_ptr<ByteStream> inner, bool is_log)
      : network_(network),
        simulation_(network.simulation_),
        is_dead_(std::move(is_dead)),
        inner_(std::move(inner)),
        is_log_(is_log) {}

  Result<std::string> Read(TimePoint until, std::stop_token stop) override {
    for (;;) {
      if (*is_dead_) return Dead();
      if (!ready_.empty()) {
        if (!Rest(std::max(shown_at_, network_.hidden_until_), until, stop)) return NothingYet(stop);
        std::string bytes = std::move(ready_.front());
        ready_.pop_front();
        return bytes;
      }
      if (is_broken_) return Lost();
      if (is_ended_) return std::string();
      if (is_silent_) {
        WaitFor(simulation_, until - simulation_.Now(), stop);
        return NothingYet(stop);
      }
      if (std::optional<std::string_view> line = lines_.Next()) {
        Deliver(std::string(*line) + "\n");
        continue;
      }
      Result<std::string> chunk = inner_->Read(until, stop);
      if (!chunk) return chunk;
      if (chunk->empty()) {
        is_ended_ = true;
        continue;
      }
      if (is_log_) {  // Its reader must accept pieces that are cut anywhere.
        Deliver(*std::move(chunk));
      } else if (Status appended = lines_.Append(*std::move(chunk)); !appended) {
        return std::move(appended).error();
      }
      WaitFor(simulation_, simulation_.Between(kFastest, kSlowest), stop);
    }
  }

 private:
  // False: `until` or a stop came first.
  bool Rest(TimePoint time, TimePoint until, const std::stop_token& stop) {
    if (time > simulation_.Now()) WaitFor(simulation_, std::min(time, until) - simulation_.Now(), stop);
    return !stop.stop_requested() && simulation_.Now() >= time;
  }
  static Error NothingYet(const std::stop_token& stop) {
    if (stop.stop_requested()) return {ErrorCode::kCancelled, "stopped"};
    return {ErrorCode::kTimeout, "no bytes in time"};
  }
  void Push(std::string bytes) { ready_.push_back(std::move(bytes)); }

  void Deliver(std::string line) {
    for (const Fault& fault : network_.Pass(FaultPoint::kEvent)) {
      if (is_log_ && SparesLogs(fault)) continue;
      if (fault.Is("watch-closed")) is_ended_ = true;
      if (fault.Is("watch-silent")) is_silent_ = true;
      if (fault.Is("watch-cut")) {
        // Empty: another fault of this event has delivered it.
        if (!line.empty()) line.resize(simulation_.random()() % line.size());
        is_broken_ = true;
      }
      if (fault.Is("watch-gone") || fault.Is("watch-error")) {
        const bool is_gone = fault.Is("watch-gone");
        line = R"({"type":"ERROR","object":)" +
               (is_gone ? StatusAnswer(410, "Expired", "too old resource version")
                        : StatusAnswer(500, "InternalError", "etcd is away"))
                   .body +
               "}\n";
        is_ended_ = true;
      }
      if (fault.Is("watch-garbage")) Push("<html>{\"type\":\n");
      if (fault.Is("watch-unknown"))
        Push(R"({"type":"RENAMED","object":{}})"
             "\n");
      if (fault.Is("watch-twice")) Push(line);
      if (fault.Is("watch-late")) shown_at_ = simulation_.Now() + 20s;
      if (fault.Is("watch-hidden")) shown_at_ = simulation_.Now() + 5min;
      if (fault.Is("watch-drip")) {
        for (const char byte : std::exchange(line, {})) Push(std::string(1, byte));
      }
    }
    if (!line.empty()) Push(std::move(line));
  }

  FaultyNetwork& network_;
  Simulation& simulation_;
  const std::shared_ptr<const bool> is_dead_;
  const std::unique_ptr<ByteStream> inner_;
  const bool is_log_;
  JsonLines lines_;
  std::deque<std::string> ready_;
  TimePoint shown_at_{};
  bool is_ended_ = false, is_broken_ = false, is_silent_ = false;
};

class FaultyNetwork::Line final : public Transport {
 public:
  Line(FaultyNetwork& network, int process, std::string identity)
      : network_(network), simulation_(network.simulation_), process_(process), identity_(std::move(identity)) {}
  ~Line() override {
    if (const auto it = network_.lines_.find(process_); it != network_.lines_.end() && it->second == this) {
      network_.lines_.erase(it);
    }
  }

  std::shared_ptr<const bool> is_dead() const { return is_dead_; }
  void Die() {
    *is_dead_ = true;
    if (!identity_.empty() && renewed_at_ != TimePoint{}) network_.died_at_ = simulation_.Now();
  }

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token stop) override {
    if (*is_dead_) {
      ++network_.writes_;
      return Dead();
    }
    CheckRetryAfter(request);
    const FaultPoint point = request.method == "GET" ? FaultPoint::kRead
                             : IsLease(request)      ? FaultPoint::kRenewal
                                                     : FaultPoint::kWrite;
    const TimePoint sent = simulation_.Now();
    std::vector<Fault> faults;
    if (!IsEvent(request)) faults = network_.Pass(point);
    for (const Fault& fault : faults) {
      if (fault.Is("renewal-refused")) network_.no_leases_until_ = simulation_.Now() + 30s;
      if (fault.Is("crash-before") || fault.Is("leader-crash")) return Crash();
      if (fault.Is("refused") || fault.Is("read-refused")) return Refused();
    }
    if (!WaitFor(simulation_, simulation_.Between(kFastest, kSlowest), stop))
      return Error(ErrorCode::kCancelled, "stopped");
    if (*is_dead_) return Dead();
    if (IsAway(request)) return Refused();
    for (const Fault& fault : faults) {
      if (std::optional<HttpResponse> refusal = Refusal(fault); refusal && !fault.Is("reply-garbage"))
        return Note(request, *std::move(refusal));
    }

    Result<HttpResponse> answer = network_.server_.Send(request, stop);
    if (answer && point != FaultPoint::kRead) NoteWrite(request, *answer, sent);
    for (const Fault& fault : faults) {
      if (fault.Is("crash-after")) return Crash();
      if (fault.Is("process-frozen") || fault.Is("leader-frozen")) simulation_.Freeze(process_, kFrozen);
      if (fault.Is("reply-lost") || fault.Is("renewal-lost") || fault.Is("read-lost")) return Lost();
      if (fault.Is("reply-slow")) {
        WaitFor(simulation_, request.timeout, stop);
        return Error(ErrorCode::kTimeout, "the server did not answer in time");
      }
      if (fault.Is("reply-garbage")) return *Refusal(fault);
      if (fault.Is("reply-truncated") || fault.Is("read-truncated")) {
        if (answer) answer->body.resize(answer->body.size() / 2);
      }
      Meddle(fault);
    }
    if (!WaitFor(simulation_, simulation_.Between(kFastest, kSlowest), stop))
      return Error(ErrorCode::kCancelled, "stopped");
    if (*is_dead_) return Dead();
    if (answer) return Note(request, *std::move(answer));
    return answer;
  }

  Result<StreamResponse> Open(const HttpRequest& request, std::stop_token stop) override {
    if (*is_dead_) return Dead();
    CheckRetryAfter(request);
    const std::vector<Fault> faults = network_.Pass(FaultPoint::kOpen);
    if (!WaitFor(simulation_, simulation_.Between(kFastest, kSlowest), stop))
      return Error(ErrorCode::kCancelled, "stopped");
    if (*is_dead_) return Dead();
    if (IsAway(request)) return Refused();
    for (const Fault& fault : faults) {
      if (IsLog(request) && SparesLogs(fault)) continue;
      if (fault.Is("open-refused")) return Refused();
      if (fault.Is("open-no-watch-list") && request.target.find("sendInitialEvents") == std::string::npos) continue;
      if (std::optional<HttpResponse> refusal = Refusal(fault)) {
        if (refusal->status != 200) return StreamResponse{Note(request, *std::move(refusal)), nullptr};
        return StreamResponse{*refusal, OneChunk(refusal->body)};
      }
    }
    Result<StreamResponse> opened = network_.server_.Open(request, stop);
    if (opened && opened->stream) {
      opened->stream = std::make_unique<Stream>(network_, is_dead_, std::move(opened->stream), IsLog(request));
    }
    return opened;
  }

 private:
  class Chunk final : public ByteStream {
   public:
    explicit Chunk(std::string body) : body_(std::move(body)) {}
    Result<std::string> Read(TimePoint, std::stop_token) override { return std::exchange(body_, {}); }

   private:
    std::string body_;
  };
  static std::unique_ptr<ByteStream> OneChunk(std::string body) { return std::make_unique<Chunk>(std::move(body)); }

  Error Crash() {
    network_.Detach(process_);
    network_.hooks_.crash(process_);
    return Dead();
  }

  bool IsAway(const HttpRequest& request) const {
    const TimePoint now = simulation_.Now();
    return now < network_.down_until_ ||
           (IsLease(request) && request.method != "GET" && now < network_.no_leases_until_);
  }

  // Faults in the world, injected after the write.
  void Meddle(const Fault& fault) {
    if (fault.Is("server-restart")) {
      network_.down_until_ = simulation_.Now() + 20s;
      network_.server_.Compact();
      network_.server_.BreakStreams();
    } else if (fault.Is("server-lags")) {
      network_.hidden_until_ = simulation_.Now() + 40s;
    } else if (fault.Is("clock-forward")) {
      simulation_.ShiftWall(1h);
    } else if (fault.Is("clock-back")) {
      simulation_.ShiftWall(-1h);
    } else if (fault.kind->name.starts_with("child-") || fault.Is("lease-stolen")) {
      network_.hooks_.tamper(fault);
    }
  }

  HttpResponse Note(const HttpRequest& request, HttpResponse answer) {
    const std::string& wait = answer.Header("retry-after");
    if (!wait.empty()) not_before_[PathOf(request)] = simulation_.Now() + std::chrono::seconds(std::stoi(wait));
    return answer;
  }
  void CheckRetryAfter(const HttpRequest& request) {
    if (not_before_.empty()) return;
    const auto it = not_before_.find(PathOf(request));
    if (it == not_before_.end()) return;
    if (simulation_.Now() < it->second) {
      network_.Breach(
          "Retry-After was not obeyed: " + PathOf(request) + " came " +
          std::to_string(
              std::chrono::duration_cast<std::chrono::milliseconds>(it->second - simulation_.Now()).count()) +
          " ms too early");
    }
    not_before_.erase(it);
  }
  void NoteWrite(const HttpRequest& request, const HttpResponse& answer, TimePoint sent) {
    const TimePoint now = simulation_.Now();
    if (IsLease(request)) {
      if (answer.status >= 300) return;
      // A process that has given the lease back holds none.
      const bool is_ours = TextAt(answer.body, {"spec", "holderIdentity"}) == identity_;
      renewed_at_ = is_ours ? now : TimePoint{};
      if (network_.died_at_ != TimePoint::max() && now > network_.died_at_) {
        network_.longest_takeover_ = std::max(network_.longest_takeover_, now - network_.died_at_);
        network_.died_at_ = TimePoint::max();
      }
      return;
    }
    if (request.target.find("dryRun=All") == std::string::npos) ++network_.writes_;
    if (!identity_.empty() && !IsEvent(request) && sent > renewed_at_ + kLeaseDuration) {
      network_.Breach("a write after the lease of " + identity_ + " had run out: " + PathOf(request));
    }
  }

  FaultyNetwork& network_;
  Simulation& simulation_;
  const int process_;
  const std::string identity_;
  const std::shared_ptr<bool> is_dead_ = std::make_shared<bool>(false);
  std::map<std::string, TimePoint> not_before_;
  TimePoint renewed_at_{};  // When the last write that kept its lease was carried out; zero: it holds none.
};

class FaultyNetwork::AskedLine final : public Transport {
 public:
  AskedLine(FaultyNetwork& network, AskedServer& server, std::shared_ptr<const bool> is_dead)
      : network_(network), server_(server), is_dead_(std::move(is_dead)) {}

  Result<HttpResponse> Send(const HttpRequest& request, std::stop_token) override {
    return Error(ErrorCode::kInternal, "the simulation only streams from other servers: " + request.target);
  }
  Result<StreamResponse> Open(const HttpRequest& request, std::stop_token stop) override {
    if (*is_dead_) return Dead();
    const std::vector<Fault> faults = network_.Pass(FaultPoint::kQuery);
    Simulation& simulation = network_.simulation_;
    if (!WaitFor(simulation, simulation.Between(kFastest, kSlowest), stop))
      return Error(ErrorCode::kCancelled, "stopped");
    if (*is_dead_) return Dead();
    Result<StreamResponse> answer = server_.Answer(request, faults, std::move(stop));
    if (*is_dead_) return Dead();
    return answer;
  }

 private:
  FaultyNetwork& network_;
  AskedServer& server_;
  const std::shared_ptr<const bool> is_dead_;
};

FaultyNetwork::FaultyNetwork(Simulation& simulation, FakeApiServer& server, std::vector<Fault> faults, Hooks hooks)
    : simulation_(simulation), server_(server), faults_(std::move(faults)), hooks_(std::move(hooks)) {}

FaultyNetwork::~FaultyNetwork() = default;

std::unique_ptr<Transport> FaultyNetwork::Attach(int process, std::string identity) {
  auto line = std::make_unique<Line>(*this, process, std::move(identity));
  lines_[process] = line.get();
  return line;
}

std::unique_ptr<Transport> FaultyNetwork::AttachTo(AskedServer& server, int process) {
  return std::make_unique<AskedLine>(*this, server, lines_.at(process)->is_dead());
}

void FaultyNetwork::Detach(int process) {
  if (const auto it = lines_.find(process); it != lines_.end()) it->second->Die();
}

std::vector<Fault> FaultyNetwork::Pass(FaultPoint point) {
  const int index = counts_[static_cast<std::size_t>(point)]++;
  std::vector<Fault> due;
  for (auto fault = faults_.begin(); fault != faults_.end();) {
    if (fault->kind->point != point || fault->at != index) {
      ++fault;
      continue;
    }
    due.push_back(*fault);
    fault = faults_.erase(fault);
  }
  return due;
}

void FaultyNetwork::Breach(std::string what) { breaches_.push_back(std::move(what)); }

}  // namespace kube::testing

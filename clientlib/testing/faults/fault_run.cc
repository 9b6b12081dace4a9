// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/faults/fault_run.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "clientlib/base/wait.h"
#include "clientlib/testing/api_server/json_access.h"
#include "clientlib/testing/faults/end_state.h"
#include "clientlib/testing/faults/faulty_network.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

constexpr Duration kStepLimit = 3h;     // Longer than a safety resync, which repairs what a lost event left undone.
constexpr Duration kQuiet = 6min;       // Longer than any fault hides changes.
constexpr Duration kLongQuiet = 70min;  // After tampering: its repair may wait for a resync.
constexpr Duration kSettleLimit = 4h;
constexpr Duration kRest = 10min;
constexpr int kMostWrites = 10'000;
constexpr Duration kQuickestStart = 1s, kSlowestStart = 8s;  // From the end of a process to the next one's start.

bool IsQuiet(std::string_view resource) { return resource.starts_with("leases") || resource.starts_with("events"); }

// One run, from the empty cluster to the end.
class FaultRun {
 public:
  FaultRun(const Workload& workload, const Schedule& schedule)
      : workload_(workload),
        world_(schedule.seed),
        network_(world_.simulation, world_.server, schedule.faults,
                 {[this](int process) { OnCrash(process); }, [this](const Fault& fault) { Tamper(fault); }}),
        invariants_(workload.Invariants()),
        owned_(workload.owned_resources()) {}

  Outcome Play() {
    workload_.Prepare(world_);
    CatchUp();
    for (int process = 0; process < workload_.processes(); ++process) StartProcess(process);
    const bool is_done = PlaySteps() && (is_noted_ || Settle());
    if (is_done && !is_noted_) Rest();
    CatchUp();
    outcome_.end = EndState(world_, workload_);
    if (is_done && !is_noted_) {
      for (std::string& complaint : workload_.CheckRest(world_)) Complain(std::move(complaint));
    }
    for (const std::string& breach : network_.breaches()) Complain(breach);
    outcome_.has_faults_left = !network_.all_faults_happened();
    outcome_.longest_takeover = network_.longest_takeover();
    outcome_.took = Now() - Simulation::kStart;
    outcome_.last_revision = world_.server.revision();
    for (const auto& [name, count] : births_) {
      outcome_.births[name] = "created " + std::to_string(count.first) + ", deleted " + std::to_string(count.second);
    }
    if (is_tampered_) outcome_.births.clear();  // Tampering changes the counts.
    EndProcesses();
    return std::move(outcome_);
  }

 private:
  struct Process {
    std::stop_source stop{std::nostopstate};
    Thread thread;
  };

  TimePoint Now() const { return world_.simulation.Now(); }
  void Complain(std::string what) {
    if (outcome_.complaints.size() < 20) outcome_.complaints.push_back(std::move(what));
  }

  void StartProcess(int number) {
    auto process = std::make_unique<Process>();
    Process& it = *process;
    it.thread = world_.simulation.SpawnProcess(number, [this, number, &it](const std::stop_token& stop) {
      for (int start = 1; !stop.stop_requested(); ++start) {
        const std::string identity = "manager-" + std::to_string(number) + "-" + std::to_string(start);
        const auto line = network_.Attach(number, workload_.uses_leases() ? identity : "");
        it.stop = std::stop_source();
        std::stop_callback forward(stop, [&it] { it.stop.request_stop(); });
        const auto asked = world_.asked ? network_.AttachTo(*world_.asked, number) : nullptr;
        workload_.RunProcess({world_.simulation, *line, identity, asked.get(), world_.caller.get()},
                             it.stop.get_token());
        WaitFor(world_.simulation, world_.simulation.Between(kQuickestStart, kSlowestStart), stop);
      }
    });
    processes_.push_back(std::move(process));
  }
  // Called from within the process, so stop it from outside.
  void OnCrash(int number) {
    world_.simulation.After(Duration{},
                            [this, number] { processes_[static_cast<std::size_t>(number)]->stop.request_stop(); });
  }
  void EndProcesses() {
    for (auto& process : processes_) process->thread.RequestStop();
    for (auto& process : processes_) process->thread.Join();
  }

  // Applies the server's changes to world_.objects, one revision after the other.
  void CatchUp() {
    for (std::size_t i = 0; i < world_.changes.size(); ++i) {
      const ServerChange change = world_.changes[i];
      const Json& any = change.after ? *change.after : *change.before;
      auto& objects = world_.objects.try_emplace(std::string(change.resource)).first->second;
      if (change.after) objects[KeyOf(any)] = change.after;
      else objects.erase(KeyOf(any));
      if (!IsQuiet(change.resource)) changed_at_ = Now();
      if ((!change.before || !change.after) &&
          std::find(owned_.begin(), owned_.end(), change.resource) != owned_.end() &&
          workload_.AreCounted(change.resource)) {
        auto& [created, deleted] =
            births_[std::string(change.resource) + " " + KeyOf(any).ns + "/" + workload_.NameOf(change.resource, any)];
        ++(change.after ? created : deleted);
      }
      for (const Invariant& invariant : invariants_) {
        if (std::string broken = invariant(world_, change); !broken.empty()) {
          Complain("revision " + std::to_string(change.revision) + ": " + broken);
        }
      }
    }
    world_.changes.clear();
  }

  // Runs until `holds`, which is checked after each change; false if it does not hold by `until`.
  bool RunUntil(const std::function<bool()>& holds, TimePoint until) {
    bool is_new = true;
    const bool held = world_.simulation.RunUntil(
        [&] {
          if (IsRunningWild()) return true;
          if (!world_.changes.empty()) {
            CatchUp();
            is_new = true;
          }
          return std::exchange(is_new, false) && holds();
        },
        until);
    return held && !IsRunningWild();
  }
  // It writes without a pause: played to its end, the run would take hours.
  bool IsRunningWild() const { return network_.writes() > kMostWrites; }

  bool PlaySteps() {
    for (const Step& step : workload_.Steps()) {
      is_noted_ = step.waits_for_rest;
      if (!RunUntil([&] { return step.when(world_); }, Now() + kStepLimit)) {
        Complain("never came: " + step.name);
        return false;
      }
      if (step.waits_for_rest && !NoteRest()) return false;
      if (!step.act) continue;
      RunFor(world_.simulation.Between(50ms, 3s));
      step.act(world_);
      if (step.lasts > Duration::zero()) RunFor(step.lasts);
    }
    return true;
  }
  void RunFor(Duration time) {
    RunUntil([] { return false; }, Now() + time);
  }

  Duration QuietTime() const {
    if (is_noted_) return workload_.QuietTime(world_).value_or(kQuiet);
    return is_tampered_ ? kLongQuiet : kQuiet;
  }
  // Runs until nothing has changed for QuietTime().
  bool Settle() {
    CatchUp();
    const TimePoint limit = Now() + kSettleLimit;
    while (Now() < changed_at_ + QuietTime()) {
      if (Now() > limit || IsRunningWild()) {
        Complain("never came to rest, in " + std::to_string(network_.writes()) + " writes");
        return false;
      }
      RunFor(std::min<Duration>(1min, changed_at_ + QuietTime() - Now()));
    }
    for (std::size_t point = 0; point < outcome_.points.size(); ++point) {
      outcome_.points[point] = network_.count(static_cast<FaultPoint>(point));
    }
    return true;
  }
  void Rest() {
    if (const int more = WritesAtRest(); more > 0) {
      Complain(std::to_string(more) + " writes within ten minutes of rest");
    }
  }
  int WritesAtRest() {
    const int writes = network_.writes();
    RunFor(kRest);
    return network_.writes() - writes;
  }
  bool NoteRest() {
    if (!Settle()) return false;
    RestState rest;
    rest.is_pause = QuietTime() < kQuiet;
    if (!rest.is_pause) rest.writes = WritesAtRest();
    CatchUp();
    rest.state = EndState(world_, workload_);
    rest.complaints = workload_.CheckRest(world_);
    if (rest.is_pause) rest.writes = WritesAtRest();
    outcome_.rests.push_back(std::move(rest));
    return true;
  }

  void Tamper(const Fault& fault) {
    is_tampered_ = true;
    world_.simulation.After(world_.simulation.Between(1ms, 2s), [this, fault] {
      if (fault.Is("lease-stolen")) return StealLease();
      std::vector<std::pair<std::string, ObjectKey>> candidates;
      for (const std::string& resource : owned_) {
        for (const auto& object : world_.server.List(resource)) {
          if (Json copy = *object; workload_.Damage(resource, copy)) candidates.emplace_back(resource, KeyOf(*object));
        }
      }
      if (candidates.empty()) return;
      const auto& [resource, key] = candidates[world_.simulation.random()() % candidates.size()];
      if (fault.Is("child-deleted")) return (void)world_.server.Delete(resource, key);
      Json object = *world_.server.Get(resource, key);
      if (fault.Is("child-labels-lost")) object["metadata"].Erase("labels");
      else if (!workload_.Damage(resource, object)) return;
      (void)world_.server.Update(resource, std::move(object));
    });
  }
  void StealLease() {
    for (const auto& lease : world_.server.List("leases.coordination.k8s.io")) {
      Json stolen = *lease;
      stolen["spec"]["holderIdentity"] = "thief";
      (void)world_.server.Update("leases.coordination.k8s.io", std::move(stolen));
    }
  }

  const Workload& workload_;
  World world_;
  FaultyNetwork network_;
  std::vector<std::unique_ptr<Process>> processes_;
  const std::vector<Invariant> invariants_;
  const std::vector<std::string> owned_;
  std::map<std::string, std::pair<int, int>> births_;
  TimePoint changed_at_ = Simulation::kStart;
  bool is_tampered_ = false;
  bool is_noted_ = false;  // The last step waited for rest.
  Outcome outcome_;
};

// The first difference between `model` and `text`, with some context.
std::string Difference(const std::string& model, const std::string& text) {
  const auto [a, b] = std::mismatch(model.begin(), model.end(), text.begin(), text.end());
  const auto at = static_cast<std::size_t>(a - model.begin());
  const std::size_t from = at > 60 ? at - 60 : 0;
  return "..." + model.substr(from, 160) + "... became ..." + text.substr(from, 160) + "...";
}

void CompareMaps(const char* what, const std::map<std::string, std::string>& model,
                 const std::map<std::string, std::string>& run, std::vector<std::string>& differences) {
  for (const auto& [key, value] : model) {
    const auto it = run.find(key);
    if (it == run.end()) differences.push_back(std::string(what) + ": " + key + " is missing");
    else if (it->second != value)
      differences.push_back(std::string(what) + ": " + key + ": " + Difference(value, it->second));
  }
  for (const auto& [key, value] : run) {
    if (!model.contains(key))
      differences.push_back(std::string(what) + ": " + key + " is there: " + value.substr(0, 200));
  }
}

}  // namespace

Outcome Run(const Workload& workload, const Schedule& schedule) { return FaultRun(workload, schedule).Play(); }

std::vector<std::string> Compare(const Outcome& model, const Outcome& run) {
  std::vector<std::string> differences = run.complaints;
  CompareMaps("end state", model.end, run.end, differences);
  if (!run.births.empty()) CompareMaps("creates and deletes", model.births, run.births, differences);
  return differences;
}

}  // namespace kube::testing

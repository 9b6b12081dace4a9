// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/trial_invariants.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <set>

#include "controllers/cluster/owners.h"
#include "controllers/trial/trial_plan.h"
#include "tests/campaign/elastic_workload.h"

namespace grus::testing {
namespace {

using kube::testing::IntAt;
using kube::testing::ServerChange;

// The times of pods are whole seconds, and so is what is spent; it is rounded up.
constexpr double kRounding = 2;

std::string ToText(const TrialSetting& setting) {
  return std::to_string(setting.gpus) + " GPUs, batch size " + std::to_string(setting.batch_size);
}

std::string TrialJobOf(const Json& job) { return Text(job, {"metadata", "labels", kTrialJobLabel}); }

bool IsActivePhase(const std::string& phase) {
  return phase == "Starting" || phase == "Warming" || phase == "Measuring";
}

// By TrialJob and configuration.
using Settings = std::map<std::pair<std::string, TrialSetting>, std::string>;

// A trial is a job or a pod of its own.
bool IsTrial(const ServerChange& change) {
  if (change.resource != kJobs && change.resource != "pods") return false;
  return !TrialJobOf(change.after ? *change.after : *change.before).empty();
}

bool IsRunning(const std::shared_ptr<const Json>& pod) { return pod && Text(*pod, {"status", "phase"}) == "Running"; }

std::int64_t LastNumber(const Json* words) {
  std::int64_t number = 0;
  if (words == nullptr || words->AsArray() == nullptr || words->AsArray()->empty()) return number;
  const std::string& last = *words->AsArray()->back().AsString();
  std::from_chars(last.data(), last.data() + last.size(), number);
  return number;
}

// What the pods of one trial hold, and held.
struct Held {
  std::string trial_job;
  std::int64_t gpus = 0;
  std::set<std::string> pods;  // Workers that are bound and have not ended.
  kube::TimePoint since;
};

class Ledger {
 public:
  explicit Ledger(kube::Duration lateness) : lateness_(std::chrono::duration<double>(lateness).count()) {}
  std::string Observe(const World& world, const ServerChange& change) {
    if (change.resource == "pods") NotePod(world, change);
    if (change.resource == kTrialJobs && change.after) return CheckStatus(world, change);
    return {};
  }

 private:
  void NotePod(const World& world, const ServerChange& change) {
    const Json& pod = change.after ? *change.after : *change.before;
    const bool is_trial = IsTrial(change);
    if (!is_trial && Text(pod, {"metadata", "labels", kRoleLabel}) != "worker") return;
    const std::string trial =
        is_trial ? Text(pod, {"metadata", "name"}) : Text(pod, {"metadata", "labels", kJobNameLabel});
    const Json* made = is_trial ? &pod : world.Get(kJobs, {kNamespace, trial});
    if (made != nullptr && !TrialJobOf(*made).empty()) {
      Held& held = held_[trial];
      held.trial_job = TrialJobOf(*made);
      held.gpus = SettingOf(*made).gpus;
    }
    const auto found = held_.find(trial);
    if (found == held_.end()) return;
    Held& held = found->second;
    const bool had = !held.pods.empty();
    const bool holds = change.after && !Text(pod, {"spec", "nodeName"}).empty() && !kube::testing::HasEnded(pod);
    if (holds) held.pods.insert(Text(pod, {"metadata", "uid"}));
    else held.pods.erase(Text(pod, {"metadata", "uid"}));
    if (!had && holds) {
      held.since = world.simulation.Now();
      rounding_[held.trial_job] += kRounding * static_cast<double>(held.gpus);
    }
    if (had && held.pods.empty()) spent_[held.trial_job] += Seconds(held, world.simulation.Now());
  }

  static double Seconds(const Held& held, kube::TimePoint now) {
    return static_cast<double>(held.gpus) * std::chrono::duration<double>(now - held.since).count();
  }

  std::string CheckStatus(const World& world, const ServerChange& change) {
    const Json& job = *change.after;
    const std::string name = Text(job, {"metadata", "name"});
    double spent = spent_[name];
    std::int64_t most_gpus = 0;
    for (const auto& [trial, held] : held_) {
      if (held.trial_job != name) continue;
      most_gpus = std::max(most_gpus, held.gpus);
      if (!held.pods.empty()) spent += Seconds(held, world.simulation.Now());
    }
    const double late = static_cast<double>(most_gpus) * lateness_;
    const double poll = static_cast<double>(most_gpus) * std::chrono::duration<double>(kPoll).count();
    const std::int64_t said = IntAt(job, {"status", "spent", "gpuSeconds"});
    const Json* budget = job.At({"spec", "budget", "gpuSeconds"});
    if (budget != nullptr && spent > static_cast<double>(*budget->AsInt()) + poll + late) {
      return name + " has spent " + std::to_string(spent) + " GPU seconds of " + std::to_string(*budget->AsInt());
    }
    std::int64_t sum = 0;
    if (const Json* trials = job.At({"status", "trials"}); trials && trials->AsArray()) {
      for (const Json& trial : *trials->AsArray()) {
        if (Text(trial, {"reason"}) != "FromCache") sum += IntAt(trial, {"gpuSeconds"});
      }
    }
    if (sum != said) return name + " says " + std::to_string(said) + " GPU seconds, its trials " + std::to_string(sum);
    if (change.before && IntAt(*change.before, {"status", "spent", "gpuSeconds"}) > said) {
      return name + " has spent less than before: " + std::to_string(said) + " GPU seconds";
    }
    const bool has_ended = job.At({"status", "completionTime"}) != nullptr;
    const double over = static_cast<double>(said) - spent;
    if (has_ended && (over < -poll || over > rounding_[name] + late)) {
      return name + " says " + std::to_string(said) + " GPU seconds, its pods held " + std::to_string(spent);
    }
    return {};
  }

  const double lateness_;                           // Seconds.
  std::map<std::string, Held> held_;                // By trial.
  std::map<std::string, double> spent_, rounding_;  // By TrialJob: of tries whose pods are gone; of all.
};

}  // namespace

TrialSetting SettingOf(const Json& trial) {
  const Json* containers = trial.At({"spec", "containers"});
  if (containers == nullptr) {
    return {IntAt(trial, {"spec", "workersSpec", "minReplicas"}),
            LastNumber(trial.At({"spec", "launcherSpec", "pythonCommand"}))};
  }
  const Json& container = containers->AsArray()->at(0);
  std::int64_t gpus = 0;
  const std::string limit = Text(container, {"resources", "limits", "nvidia.com/gpu"});
  std::from_chars(limit.data(), limit.data() + limit.size(), gpus);
  return {gpus, LastNumber(container.At({"command"}))};
}

kube::testing::Invariant NoSettingTwice() {
  return [tried = Settings()](const World& world, const ServerChange& change) mutable -> std::string {
    if (change.resource == kTrialJobs && change.after) {
      const Json* trials = change.after->At({"status", "trials"});
      if (trials == nullptr || trials->AsArray() == nullptr) return {};
      for (const Json& trial : *trials->AsArray()) {
        if (Text(trial, {"phase"}) != "Pending") continue;
        const TrialSetting setting{IntAt(trial, {"config", "gpus"}), IntAt(trial, {"config", "batchSize"})};
        tried.erase({Text(*change.after, {"metadata", "name"}), setting});
      }
      return {};
    }
    if (!IsTrial(change) || !change.after) return {};
    const bool is_pod = change.resource == "pods";
    // A pod that never ran has tried nothing, and another may take its place.
    const bool begins = is_pod ? !IsRunning(change.before) && IsRunning(change.after) : !change.before;
    if (!begins) return {};
    const std::string name = TrialJobOf(*change.after), uid = Text(*change.after, {"metadata", "uid"});
    const TrialSetting setting = SettingOf(*change.after);
    for (const auto& [key, other] : world.All(change.resource)) {
      if (TrialJobOf(*other) == name && SettingOf(*other) == setting && Text(*other, {"metadata", "uid"}) != uid) {
        return name + " has two trials of " + ToText(setting);
      }
    }
    const bool is_new = tried.emplace(std::pair(name, setting), uid).second;
    if (!is_new) return name + " tries " + ToText(setting) + " a second time";
    const Json* owner = world.Get(kTrialJobs, {kNamespace, name});
    const Json* trials = owner ? owner->At({"status", "trials"}) : nullptr;
    const std::string untold = name + " tries " + ToText(setting) + " and says nothing of it";
    if (trials == nullptr || trials->AsArray() == nullptr) return untold;
    for (const Json& trial : *trials->AsArray()) {
      const bool is_it = Text(trial, {"name"}) == Text(*change.after, {"metadata", "name"});
      if (is_it && IsActivePhase(Text(trial, {"phase"}))) return {};
    }
    return untold;
  };
}

kube::testing::Invariant BudgetIsKept(kube::Duration lateness) {
  return [ledger = Ledger(lateness)](const World& world, const ServerChange& change) mutable {
    return ledger.Observe(world, change);
  };
}

}  // namespace grus::testing

// SPDX-License-Identifier: Apache-2.0
#include "tests/campaign/spec_check.h"

#include <utility>

namespace grus::testing {
namespace {

using kube::testing::Outcome;
using kube::testing::RestState;

// What was refused is tried again every five minutes, in case that an admission check has changed its mind.
constexpr int kRetriesAtRest = 3;
// And what cannot start has two more tries in ten minutes, each with all that a start writes.
constexpr int kWritesOfTwoTries = 2 * 40;

std::vector<std::string> ComplaintsOf(const RestState& rest, const Snapshot& snapshot) {
  std::vector<std::string> complaints = rest.complaints;
  if (rest.writes > (rest.is_pause ? kWritesOfTwoTries : IsStalled(snapshot) ? kRetriesAtRest : 0)) {
    complaints.push_back(std::to_string(rest.writes) + " writes within ten minutes of rest");
  }
  return complaints;
}

// One plan: the run with all of its edits and their undoing, looked at rest by rest.
class Check {
 public:
  Check(const SpecPlan& plan, FreshDeploys& fresh) : plan_(plan), fresh_(fresh), rehearsal_(Rehearse(plan)) {}

  SpecVerdict Run() {
    const std::size_t edits = plan_.edits.size();
    const LiveRun run = RunLive(plan_, rehearsal_, {edits, true, false});
    verdict_.operations = static_cast<int>(edits) + 1;
    for (std::size_t i = 0; i < edits; ++i) {
      verdict_.refused += run.is_refused[i];
      if (run.is_refused[i] != rehearsal_.is_refused[i])
        Wrong("edit " + std::to_string(i + 1), {"accepted or refused by chance"});
    }
    Wrong("on the way", run.outcome.complaints);
    const std::size_t looks = plan_.is_quick ? 3 : edits + 2;
    if (run.outcome.rests.size() != looks) return verdict_;
    for (std::size_t look = 0; look < looks; ++look) {
      const bool is_undone = look + 1 == looks;
      const std::size_t done = is_undone || (plan_.is_quick && look > 0) ? edits : look;
      Look(run.outcome.rests[look], done, is_undone);
    }
    return verdict_;
  }

 private:
  // `done`: how many edits were made by then.
  void Look(const RestState& rest, std::size_t done, bool is_undone) {
    const std::string when = is_undone ? "undone" : done == 0 ? "before" : "after edit " + std::to_string(done);
    const Json& target = rehearsal_.stored[is_undone ? 0 : done];
    Snapshot live = ParseSnapshot(rest.state);
    const Snapshot before = std::exchange(last_, live);
    if (IsForeign(target)) {
      if (!plan_.is_quick && done > 0)
        Wrong(when + ", although it is another controller's", ChangesOfOthers(before, live));
      return;
    }
    Wrong(when, ComplaintsOf(rest, live));
    const auto fresh = fresh_.Of(*plan_.base, target);
    Wrong("fresh deploy " + when, fresh->complaints);
    TemplateChange change;
    bool had_ended = false;
    for (std::size_t i = 0; i <= done; ++i) {
      const Json& earlier = rehearsal_.stored[i];
      change |= ChangeBetween(earlier, target);
      if (IsForeign(earlier)) continue;
      const auto then = fresh_.Of(*plan_.base, earlier);
      was_short_ = was_short_ || IsShort(then->snapshot);
      had_ended = had_ended || HasEnded(then->snapshot);
    }
    was_short_ = was_short_ || IsShort(live);
    if (HasEnded(live) && had_ended) return;  // What has ended stays so.
    const Judgement judgement = Judge(fresh->snapshot, live, change, was_short_);
    Wrong(when, judgement.wrong);
    if (judgement.wrong.empty() && judgement.is_by_history) LookAfterRestart(done, is_undone, fresh->snapshot);
  }

  // All pods are made again: no history is left to explain a difference.
  void LookAfterRestart(std::size_t done, bool is_undone, const Snapshot& fresh) {
    ++verdict_.restarts;
    const LiveRun run = RunLive(plan_, rehearsal_, {done, is_undone, true});
    const std::string when =
        std::string(is_undone ? "undone" : "after edit " + std::to_string(done)) + " and restarted";
    Wrong(when, run.outcome.complaints);
    if (run.outcome.rests.empty()) return;
    const Snapshot live = ParseSnapshot(run.outcome.rests.back().state);
    Wrong(when, ComplaintsOf(run.outcome.rests.back(), live));
    Wrong(when, Judge(fresh, live, {}, was_short_).wrong);
  }

  void Wrong(const std::string& when, const std::vector<std::string>& what) {
    for (const std::string& line : what) verdict_.wrong.push_back(when + ": " + line);
  }

  const SpecPlan& plan_;
  FreshDeploys& fresh_;
  const Rehearsal rehearsal_;
  Snapshot last_;
  bool was_short_ = false;
  SpecVerdict verdict_;
};

}  // namespace

std::shared_ptr<const FreshDeploys::Deploy> FreshDeploys::Of(const SpecBase& base, const Json& job) {
  const std::string key = base.name + kube::ToText(*job.Find("spec"));
  {
    std::lock_guard lock(mutex_);
    if (const auto it = deploys_.find(key); it != deploys_.end()) return it->second;
  }
  const Outcome outcome = RunFresh(base, 1, job);
  auto deploy = std::make_shared<Deploy>();
  deploy->complaints = outcome.complaints;
  if (!outcome.rests.empty()) {
    deploy->snapshot = ParseSnapshot(outcome.rests[0].state);
    for (std::string& complaint : ComplaintsOf(outcome.rests[0], deploy->snapshot)) {
      deploy->complaints.push_back(std::move(complaint));
    }
  }
  std::lock_guard lock(mutex_);
  return deploys_[key] = std::move(deploy);
}

SpecVerdict CheckPlan(const SpecPlan& plan, FreshDeploys& fresh) { return Check(plan, fresh).Run(); }

}  // namespace grus::testing

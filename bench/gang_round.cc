// SPDX-License-Identifier: Apache-2.0
#include "bench/gang_round.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>

#include "bench/manager_run.h"
#include "bench/measure.h"
#include "bench/race_objects.h"
#include "clientlib/model/apps_v1.h"
#include "clientlib/model/batch_v1.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;
using std::chrono::seconds;

constexpr seconds kStall(3), kIdle(15), kStatusLimit(5), kRoundLimit(60);
constexpr kube::Duration kLook = std::chrono::milliseconds(100);  // Deadlines are looked at so often, events at once.
constexpr int kGangTimeoutSeconds = 10, kJobTimeoutSeconds = 5;
constexpr seconds kVictimsLimit(30), kRollBackLimit(20), kSettle(1);

class Round {
 public:
  Round(const GangWorld& world, const std::string& ns, const RoundPlan& plan, const FreeUnits& free)
      : world_(world), ns_(ns), plan_(plan), free_(free), start_(Now()), last_event_(start_), last_bind_(start_) {
    for (const Outsider& outsider : plan.outsiders) {
      outsiders_.push_back({outsider, "outsider-" + std::to_string(outsiders_.size())});
    }
    for (const Victim& victim : plan.victims) {
      victims_.push_back({victim, plan.gang.name + "-victim-" + std::to_string(victims_.size())});
    }
  }

  RoundReport Play() {
    CreateVictims();
    world_.observer.Record(ns_);
    if (plan_.minimum_of_outsiders > 0) CreateGroup({kOthers, plan_.minimum_of_outsiders});
    FireMoments();
    while (!is_over_) {
      while (const auto event = world_.observer.Next(Now() + kLook)) {
        if (event->pod) Note(*event);
        FireMoments();
        if (is_over_) break;
      }
      EndShortLived();
      if (!is_over_) Judge();
    }
    world_.observer.Record("");
    NoteState();
    if (plan_.is_job) LookAtJob();
    if (!CleanUp()) report_.ending = Ending::kBroken;
    return std::move(report_);
  }

 private:
  struct Member {
    std::string name, node;
    std::array<bool, kMoments> reached{};
    bool is_running = false;
  };
  struct LiveOutsider {
    Outsider plan;
    std::string name, node{}, nominated{};
    bool is_created = false, is_refused = false, has_ended = false;
    std::optional<kube::TimePoint> ends_at{};
    // A preemptor has a node in the end.
    bool IsDecided() const { return !is_created || (is_refused && !plan.is_preemptor) || !node.empty(); }
    bool IsShort() const { return is_created && plan.life && !has_ended && !is_refused; }
  };

  struct LiveVictim {
    Victim plan;
    std::string name;
    bool is_ending = false, is_gone = false;
  };

  kube::TimePoint Now() const { return world_.clock.Now(); }

  void Say(const std::string& what) {
    char time[32];
    std::snprintf(time, sizeof time, "%8.3f ", SecondsSince(start_, world_.clock));
    report_.history.push_back(time + what);
  }
  void End(Ending ending, const std::string& detail) {
    if (is_over_) return;
    is_over_ = true;
    report_.ending = ending;
    report_.detail = detail;
    Say(std::string("over: ") + ToString(ending) + ": " + detail);
  }
  void Check(const kube::Status& status) {
    if (!status) End(Ending::kBroken, status.error().message());
  }

  void CreateVictims() {
    for (const LiveVictim& victim : victims_) {
      Check(CreateObject(world_.client, KindOf<kube::Pod>(), ns_,
                         MakeVictim(victim.name, victim.plan, plan_.gang.resource)));
    }
    const auto run = [&](const PodCounts& counts) { return counts.running == static_cast<int>(victims_.size()); };
    if (!world_.observer.WaitForPods(ns_, run, Now() + kVictimsLimit)) End(Ending::kBroken, "the victims do not run");
  }
  void CreateGroup(const GangSize& gang) {
    const int timeout = plan_.is_job ? kJobTimeoutSeconds : kGangTimeoutSeconds;
    Check(CreateObject(world_.client, KindOf<api::PodGroup>(), ns_, MakePodGroup(gang, timeout)));
  }
  void CreateGang() {
    is_gang_created_ = true;
    Say("the gang is created");
    CreateGroup(plan_.gang);
    Check(plan_.is_job ? CreateObject(world_.client, KindOf<kube::Job>(), ns_, MakeGangJob(plan_.gang))
                       : CreateObject(world_.client, KindOf<kube::StatefulSet>(), ns_, MakeGangSet(plan_.gang)));
  }
  bool MustGangCome() const {
    switch (plan_.gang_comes) {
      case GangComes::kAfterNomination:
        return std::any_of(outsiders_.begin(), outsiders_.end(),
                           [](const LiveOutsider& o) { return o.plan.is_preemptor && !o.nominated.empty(); });
      case GangComes::kAfterVictim:
        return std::any_of(victims_.begin(), victims_.end(), [](const LiveVictim& v) { return v.is_gone; });
      default: return true;
    }
  }

  void Note(const GangObserver::Event& event) {
    last_event_ = event.at;
    const kube::Pod& pod = *event.pod;
    if (pod.metadata.Label(api::kPodGroupLabel) == plan_.gang.name) return NoteMember(event);
    for (LiveOutsider& outsider : outsiders_) {
      if (outsider.name == pod.metadata.name) NoteOutsider(outsider, pod, event.is_gone);
    }
    for (LiveVictim& victim : victims_) {
      if (victim.name == pod.metadata.name) NoteVictim(victim, event);
    }
  }

  void NoteMember(const GangObserver::Event& event) {
    const kube::Pod& pod = *event.pod;
    Member& member = members_[pod.metadata.uid];
    member.name = pod.metadata.name;
    const bool was_bound = member.reached[static_cast<std::size_t>(Moment::kBound)];
    if (event.is_gone || pod.metadata.is_being_deleted()) {
      Say(member.name + " is deleted");
      if (was_bound)
        End(Ending::kPartial, member.name + " was bound to " + member.node + " and is deleted: rolled back");
      members_.erase(pod.metadata.uid);
      return;
    }
    member.node = std::string(pod.spec.node_name);
    Reach(member, Moment::kCreated, true, "");
    Reach(member, Moment::kNominated, !pod.status.nominated_node_name.empty(),
          std::string(pod.status.nominated_node_name));
    Reach(member, Moment::kLifted, !IsGated(pod), "");
    Reach(member, Moment::kBound, IsBound(pod), member.node);
    if (IsBound(pod) && !was_bound) last_bind_ = event.at;
    if (IsUnschedulable(pod) && !IsGated(pod) && refused_.insert(pod.metadata.uid).second) {
      Say(member.name + " is unschedulable");
    }
    member.is_running = pod.status.phase == "Running";
  }

  void Reach(Member& member, Moment moment, bool is_reached, const std::string& node) {
    bool& reached = member.reached[static_cast<std::size_t>(moment)];
    if (!is_reached || reached) return;
    reached = true;
    ++count_[static_cast<std::size_t>(moment)];
    Say(member.name + " " + ToString(moment) + (node.empty() ? "" : " " + node));
  }

  void NoteVictim(LiveVictim& victim, const GangObserver::Event& event) {
    if (!victim.is_ending && event.pod->metadata.is_being_deleted()) {
      victim.is_ending = true;
      Say(victim.name + " on " + victim.plan.node + " is being ended");
    }
    if (event.is_gone && !victim.is_gone) {
      victim.is_gone = true;
      Say(victim.name + " on " + victim.plan.node + " is gone");
    }
  }

  void NoteOutsider(LiveOutsider& outsider, const kube::Pod& pod, bool is_gone) {
    if (pod.status.nominated_node_name != outsider.nominated) {
      outsider.nominated = std::string(pod.status.nominated_node_name);
      if (!outsider.nominated.empty()) Say(outsider.name + " nominated " + outsider.nominated);
    }
    if (IsBound(pod) && outsider.node.empty()) {
      outsider.node = std::string(pod.spec.node_name);
      Say(outsider.name + " bound " + outsider.node);
    }
    if (IsUnschedulable(pod) != outsider.is_refused) {
      outsider.is_refused = !outsider.is_refused;
      if (outsider.is_refused) Say(outsider.name + " is unschedulable");
    }
    if (pod.status.phase == "Running" && outsider.plan.life && !outsider.ends_at) {
      outsider.ends_at = Now() + *outsider.plan.life;
    }
    if ((pod.status.phase == "Succeeded" || is_gone) && !outsider.has_ended) {
      outsider.has_ended = true;
      Say(outsider.name + (is_gone ? " is gone" : " ended"));
    }
  }

  void FireMoments() {
    for (LiveOutsider& outsider : outsiders_) {
      if (outsider.is_created || count_[static_cast<std::size_t>(outsider.plan.moment)] < outsider.plan.nth) continue;
      outsider.is_created = true;
      Say(outsider.name + " is created, " + std::to_string(outsider.plan.units) + " units");
      Check(CreateObject(world_.client, KindOf<kube::Pod>(), ns_, MakeOutsider(outsider.name, outsider.plan, plan_)));
    }
    if (!is_gang_created_ && MustGangCome()) CreateGang();
  }

  void EndShortLived() {
    Json patch = Json::MakeObject();
    patch["metadata"]["annotations"]["grus.test/outcome"] = "succeed";
    for (LiveOutsider& outsider : outsiders_) {
      if (!outsider.ends_at || outsider.has_ended || Now() < *outsider.ends_at) continue;
      outsider.ends_at = kube::TimePoint::max();  // Once.
      auto patched = world_.client.Patch(KindOf<kube::Pod>(), {ns_, outsider.name}, kube::PatchType::kMerge, patch);
      if (!patched) End(Ending::kBroken, patched.error().message());
    }
  }

  int Having(Moment moment) const {
    return static_cast<int>(std::count_if(members_.begin(), members_.end(), [&](const auto& member) {
      return member.second.reached[static_cast<std::size_t>(moment)];
    }));
  }

  void Judge() {
    const int bound = Having(Moment::kBound), lifted = Having(Moment::kLifted), all = plan_.gang.members;
    const GroupState group = world_.observer.Group(ns_, plan_.gang.name);
    const bool is_whole =
        std::count_if(members_.begin(), members_.end(), [](const auto& m) { return m.second.is_running; }) == all;
    if (is_whole && HavePreemptorsNodes()) {  // Without one, members may still be ended for it.
      if (group.phase == "Running") return End(Ending::kWhole, std::to_string(all) + " members run");
      if (Now() - last_event_ > kStatusLimit) End(Ending::kWrongStatus, "phase " + group.phase + ", " + group.message);
    } else if (bound > 0 && bound < all && Now() - last_bind_ >= kStall) {
      End(Ending::kPartial,
          std::to_string(bound) + " of " + std::to_string(all) + " members are bound, and no more in 3 s");
    } else if (bound == 0 && lifted > 0 && Now() - last_event_ >= kStall) {
      End(Ending::kStranded, std::to_string(lifted) + " members are lifted, none is bound");
    } else if (bound == 0 && lifted == 0 && IsAtRest()) {
      JudgeWaiting(group);
    }
    if (Now() - start_ > kRoundLimit) End(Ending::kStuck, "nothing is decided; " + group.reason + ": " + group.message);
  }

  bool HavePreemptorsNodes() const {
    return std::all_of(outsiders_.begin(), outsiders_.end(),
                       [](const LiveOutsider& o) { return !o.plan.is_preemptor || o.IsDecided(); });
  }

  // All outsiders that came have a node, none, or their end behind them.
  bool IsAtRest() const {
    return static_cast<int>(members_.size()) == plan_.gang.members &&
           std::all_of(outsiders_.begin(), outsiders_.end(),
                       [](const LiveOutsider& o) { return o.IsDecided() && !o.IsShort(); });
  }

  void JudgeWaiting(const GroupState& group) {
    FreeUnits free = free_;
    for (const LiveOutsider& outsider : outsiders_) {
      if (!outsider.node.empty() && !outsider.has_ended) free[outsider.node] -= outsider.plan.units;
    }
    for (const LiveVictim& victim : victims_) {
      if (!victim.is_gone) free[victim.plan.node] -= victim.plan.units;
    }
    const bool fits = RoomFor(free, plan_.gang.units) >= plan_.gang.members;
    const bool says_so =
        group.reason == "WaitingForRoom" || group.reason == "CannotFit" || group.reason == "BackingOff";
    if (says_so && !fits) return End(Ending::kWaiting, group.reason + ": " + group.message);
    if (Now() - last_event_ > kIdle) {
      End(Ending::kStuck, std::string(fits ? "waits though it fits; " : "does not fit, and does not say so; ") +
                              group.reason + ": " + group.message);
    }
  }

  void NoteState() {
    const GroupState group = world_.observer.Group(ns_, plan_.gang.name);
    Say("PodGroup: phase " + group.phase + ", attempts " + std::to_string(group.attempts) + ", " + group.reason + ": " +
        group.message);
  }

  // After a roll-back, if there is one to come.
  void LookAtJob() {
    if (report_.ending == Ending::kPartial) {
      const auto all_gated = [&](const PodCounts& counts) { return counts.gated == plan_.gang.members; };
      report_.is_rolled_back = world_.observer.WaitForPods(ns_, all_gated, Now() + kRollBackLimit);
      Say(report_.is_rolled_back ? "all members are made again" : "the members are not made again");
      LetPass(kSettle, world_.clock);
    }
    const auto job = world_.client.Get<kube::Job>({ns_, plan_.gang.name});
    if (!job) {
      std::fprintf(stderr, "%s\n", job.error().message().c_str());
      report_.ending = Ending::kBroken;
      return;
    }
    report_.has_job_failed = (*job)->status.is_failed();
    report_.failed_pods = (*job)->status.failed;
    Say("Job: " + std::to_string(report_.failed_pods) + " pods count as failed" +
        (report_.has_job_failed ? ", and it FAILED" : ""));
  }

  bool CleanUp() {
    bool is_ok = true;
    const auto remove = [&](const kube::Kind& kind, const std::string& name) {
      const kube::Status gone = world_.client.Delete(kind, {ns_, name}, {.grace_period_seconds = 0});
      if (!gone) std::fprintf(stderr, "%s\n", gone.error().message().c_str());
      is_ok = is_ok && gone.ok();
    };
    remove(plan_.is_job ? KindOf<kube::Job>() : KindOf<kube::StatefulSet>(), plan_.gang.name);
    for (const LiveVictim& victim : victims_) remove(KindOf<kube::Pod>(), victim.name);
    for (const LiveOutsider& outsider : outsiders_) {
      if (outsider.is_created) remove(KindOf<kube::Pod>(), outsider.name);
    }
    remove(KindOf<api::PodGroup>(), plan_.gang.name);
    if (plan_.minimum_of_outsiders > 0) remove(KindOf<api::PodGroup>(), kOthers);
    const auto none = [](const PodCounts& counts) { return counts.all == 0; };
    if (!world_.observer.WaitForPods(ns_, none, Now() + std::chrono::minutes(2))) {
      std::fprintf(stderr, "%d pods of %s did not go away\n", world_.observer.Pods(ns_).all, ns_.c_str());
      is_ok = false;
    }
    return is_ok;
  }

  const GangWorld& world_;
  const std::string& ns_;
  const RoundPlan& plan_;
  const FreeUnits& free_;
  const kube::TimePoint start_;
  kube::TimePoint last_event_, last_bind_;
  std::vector<LiveOutsider> outsiders_;
  std::vector<LiveVictim> victims_;
  std::map<std::string, Member> members_;  // By UID.
  std::set<std::string> refused_;          // UIDs.
  std::array<int, kMoments> count_{};      // Of members that ever came so far.
  bool is_gang_created_ = false, is_over_ = false;
  RoundReport report_;
};

}  // namespace

const char* ToString(Moment moment) {
  static constexpr const char* kNames[kMoments] = {"created", "nominated", "lifted", "bound"};
  return kNames[static_cast<int>(moment)];
}

const char* ToString(GangComes comes) {
  static constexpr const char* kNames[kGangComes] = {"at once", "after the nomination", "after the victim"};
  return kNames[static_cast<int>(comes)];
}

const char* ToString(Ending ending) {
  static constexpr const char* kNames[kEndings] = {"whole", "waiting",      "PARTIAL", "stranded",
                                                   "stuck", "wrong status", "broken"};
  return kNames[static_cast<int>(ending)];
}

int RoomFor(const FreeUnits& free, int units) {
  int room = 0;
  for (const auto& [node, left] : free) room += std::max(0, left) / units;
  return room;
}

RoundReport PlayRound(const GangWorld& world, const std::string& ns, const RoundPlan& plan, const FreeUnits& free) {
  return Round(world, ns, plan, free).Play();
}

}  // namespace bench

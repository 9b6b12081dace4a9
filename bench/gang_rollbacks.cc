// SPDX-License-Identifier: Apache-2.0
// One Job whose gang is rolled back many times, and starts in the end. No roll-back may count as a failure of the Job:
// its backoffLimit is far below their number.
#include <algorithm>
#include <cstdio>
#include <set>

#include "bench/gang_scenarios.h"
#include "bench/manager_run.h"
#include "bench/measure.h"
#include "bench/race_objects.h"
#include "clientlib/model/batch_v1.h"
#include "clientlib/model/core_v1.h"

namespace bench {
namespace {

using kube::Json;
using kube::KindOf;
using std::chrono::seconds;

// All that 6 nodes of 8 GPUs have; an outsider takes the places of two.
const GangSize kGang{"gang", 24, 2};
constexpr int kOutsiderUnits = 4;
constexpr char kOutsider[] = "outsider";
// Of a start that fails, and of the last one.
constexpr int kTimeoutSeconds = 2, kLastTimeoutSeconds = 60;
constexpr int kMostTries = 5;
constexpr seconds kStepLimit(60);
constexpr kube::Duration kLook = std::chrono::milliseconds(100);

class RolledBackJob {
 public:
  RolledBackJob(const GangWorld& world, const std::string& ns) : world_(world), ns_(ns) { world_.observer.Record(ns_); }
  ~RolledBackJob() { world_.observer.Record(""); }

  bool Create() {
    return Check(CreateObject(world_.client, KindOf<kube::Job>(), ns_, MakeGangJob(kGang))) && WaitUntilGated();
  }

  // Each with a PodGroup of its own: after some roll-backs of one its next try would be minutes away.
  bool RollBack() {
    for (int i = 0; i < kMostTries; ++i) {
      is_place_free_ = true;
      if (!CreateGroup(kTimeoutSeconds)) return false;
      const bool is_decided = Wait("a roll-back", [&] {
        const GroupState group = Group();
        return group.reason == "BackingOff" || group.phase == "Running";
      });
      const bool is_rolled_back = Group().reason == "BackingOff";
      if (is_rolled_back && first_message_.empty()) first_message_ = Group().message;
      if (!is_decided || (is_rolled_back && !WaitUntilGated())) return false;
      is_place_free_ = false;
      if (!RemoveGroupAndOutsider()) return false;
      if (is_rolled_back) return true;
      ++lost_races_;
      if (!TakeApart()) return false;
    }
    std::fprintf(stderr, "the gang came together %d times before the outsider\n", kMostTries);
    return false;
  }

  // How many members run once nobody takes a place.
  int Start() {
    if (!CreateGroup(kLastTimeoutSeconds)) return 0;
    Wait("the start", [&] { return Group().phase == "Running" && Pods().running == kGang.members; });
    return Pods().running;
  }

  // All its pods succeed.
  bool Complete() {
    Json patch = Json::MakeObject();
    patch["metadata"]["annotations"]["grus.test/outcome"] = "succeed";
    if (!ForEachPod([&](const kube::ObjectKey& pod) {
          return Check(world_.client.Patch(KindOf<kube::Pod>(), pod, kube::PatchType::kMerge, patch));
        })) {
      return false;
    }
    return Wait("the end of the Job", [&] {
      const auto job = Job();
      return job && (*job)->status.is_complete();
    });
  }

  kube::Result<std::shared_ptr<kube::Job>> Job() { return world_.client.Get<kube::Job>({ns_, kGang.name}); }
  const std::string& first_message() const { return first_message_; }
  int lost_races() const { return lost_races_; }
  int ended_with_node() const { return static_cast<int>(ended_with_node_.size()); }

 private:
  template <typename T>
  static bool Check(const T& done) {
    if (!done) std::fprintf(stderr, "%s\n", done.error().message().c_str());
    return done.ok();
  }
  GroupState Group() { return world_.observer.Group(ns_, kGang.name); }
  PodCounts Pods() { return world_.observer.Pods(ns_); }

  bool Wait(const char* what, const std::function<bool()>& reached) {
    const kube::TimePoint until = world_.clock.Now() + kStepLimit;
    while (!reached()) {
      if (world_.clock.Now() >= until) {
        const GroupState group = Group();
        std::fprintf(stderr, "%s did not come in a minute; %d pods, %d gated, %d bound; %s: %s\n", what, Pods().all,
                     Pods().gated, Pods().bound, group.reason.c_str(), group.message.c_str());
        return false;
      }
      while (const auto event = world_.observer.Next(world_.clock.Now() + kLook)) {
        if (event->pod && !event->pod->metadata.Label(api::kPodGroupLabel).empty()) Note(*event->pod);
        if (reached()) break;
      }
    }
    return true;
  }
  bool WaitUntilGated() {
    return Wait("gated pods", [&] { return Pods().gated == kGang.members; });
  }

  // The outsider comes with the first member that is let go, and has its place before the last one is.
  void Note(const kube::Pod& member) {
    if (is_place_free_ && !IsGated(member) && !member.metadata.is_being_deleted()) {
      is_place_free_ = false;
      Check(CreateObject(world_.client, KindOf<kube::Pod>(), ns_, MakeGangPod(kOutsider, "", kOutsiderUnits, false)));
    }
    if (IsBound(member) && member.metadata.is_being_deleted()) ended_with_node_.insert(member.metadata.uid);
  }

  // As a roll-back would, after a race that the outsider has lost.
  bool TakeApart() {
    Json patch = Json::MakeObject();
    patch["metadata"]["finalizers"] = Json();
    return ForEachPod([&](const kube::ObjectKey& pod) {
             return Check(world_.client.Patch(KindOf<kube::Pod>(), pod, kube::PatchType::kMerge, patch)) &&
                    Check(world_.client.Delete(KindOf<kube::Pod>(), pod));
           }) &&
           WaitUntilGated();
  }

  bool ForEachPod(const std::function<bool(const kube::ObjectKey&)>& task) {
    const auto pods = world_.client.List(KindOf<kube::Pod>(), ns_);
    return Check(pods) && std::all_of(pods->items.begin(), pods->items.end(),
                                      [&](const auto& pod) { return task(pod->metadata.Key()); });
  }

  bool CreateGroup(int timeout_seconds) {
    return Check(CreateObject(world_.client, KindOf<api::PodGroup>(), ns_, MakePodGroup(kGang, timeout_seconds)));
  }
  bool RemoveGroupAndOutsider() {
    return Check(world_.client.Delete(KindOf<api::PodGroup>(), {ns_, kGang.name})) &&
           Check(world_.client.Delete(KindOf<kube::Pod>(), {ns_, kOutsider})) &&
           Wait("a deletion", [&] { return Group().phase.empty() && Pods().all == kGang.members; });
  }

  const GangWorld& world_;
  const std::string& ns_;
  bool is_place_free_ = false;
  int lost_races_ = 0;
  std::string first_message_;
  std::set<std::string> ended_with_node_;  // UIDs.
};

}  // namespace

bool RunRollbacks(const GangWorld& world, int rollbacks) {
  if (const kube::Status prepared = PrepareNodes(world, kGpus); !prepared) {
    std::fprintf(stderr, "%s\n", prepared.error().message().c_str());
    return false;
  }
  BenchNamespace ns(world, "rollbacks");
  ManagerRun manager(world.manager, world.ManagerArguments("gang", "never"), "build/gang-bench-rollbacks.log",
                     world.clock);
  RolledBackJob job(world, ns.name());
  if (!ns.Exists() || !manager.WaitUntilReady(world.clock.Now() + seconds(30)) || !job.Create()) return false;

  const kube::TimePoint start = world.clock.Now();
  int done = 0;
  while (done < rollbacks && job.RollBack()) {
    if (++done % 10 == 0) std::printf("%d roll-backs, %.1f s\n", done, SecondsSince(start, world.clock));
    std::fflush(stdout);
  }
  const double seconds_each = SecondsSince(start, world.clock) / std::max(1, done);
  const int running = done == rollbacks ? job.Start() : 0;
  const auto state = job.Job();
  if (!state) std::fprintf(stderr, "%s\n", state.error().message().c_str());
  const bool has_failed = !state || (*state)->status.is_failed();
  const bool is_complete = running == kGang.members && job.Complete();

  std::printf("\none Job of %d pods and backoffLimit 6, nominations never; an outsider takes a place of each start\n",
              kGang.members);
  std::printf("the first roll-back: %s\n", job.first_message().c_str());
  PrintRow("roll-backs that did not come", rollbacks - done, "", 0);
  PrintRow("seconds a roll-back", seconds_each, "s");
  PrintRow("starts that came together before the outsider", job.lost_races(), "");
  PrintRow("pods with a node that were deleted", job.ended_with_node(), "");
  PrintRow("pods that the Job counts as failed", state ? (*state)->status.failed : kGang.members, "", 0);
  PrintRow("Jobs that failed", has_failed ? 1 : 0, "", 0);
  PrintRow("members that do not run once there is room", kGang.members - running, "", 0);
  PrintRow("Jobs that do not complete once their pods succeeded", is_complete ? 0 : 1, "", 0);
  return done == rollbacks && state.ok() && is_complete;
}

}  // namespace bench

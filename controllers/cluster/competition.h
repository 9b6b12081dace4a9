// SPDX-License-Identifier: Apache-2.0
// Who could take a place that is planned for a gang: pods that no place in the ledger stands for, in any resource.
//
// These are all pods outside gangs and jobs of ours, and of a gang or job as many as wait beyond its places, such as
// members that somebody made without a gate. Those that wait for a node may take a place now, those that did in the
// last ten minutes may come again. Of each kind that runs, or waits at somebody's gate, one more may come at any time.
//
// Pure data structure: no I/O, clock or lock; the owner serialises access and passes the time in.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "clientlib/base/clock.h"
#include "controllers/policy/cluster_ledger.h"

namespace grus {

// A pod without a node that no gate holds back.
struct WaitingPod {
  std::string owner;  // See OwnerOf().
  ShapePtr need;      // See AloneOf(). One pointer for all that are alike.
  int priority = 0;
  bool is_undecided = false;             // The scheduler may be at it: it was not found unschedulable.
  bool comes_alone = false;              // No other pod is to be expected because this one came.
  bool is_nominated = false;             // For a node, which the scheduler tries first.
  kube::TimePoint undecided_since = {};  // Set by Competition.
};

class Competition {
 public:
  explicit Competition(const ClusterLedger& ledger) : ledger_(ledger) {}

  // New, or changed. True: it could take a place, and that is news.
  bool Put(const std::string& uid, WaitingPod pod, kube::TimePoint now);
  // It is bound, gated or gone. REQUIRES: the ledger does not know it yet. False: it was not known to wait.
  bool Remove(const std::string& uid, kube::TimePoint now);
  // What a pod that waits needs; null: it is not known to wait.
  ShapePtr NeedOf(const std::string& uid) const;
  // A pod of this owner is bound that was not seen to wait, because its events came late.
  void AddBound(const std::string& owner, const ShapePtr& need, kube::TimePoint now);
  // A pod without an owner exists that does not wait for a node; or it is gone, or waits now.
  void AddPresent(const ShapePtr& need) { ++kinds_[{"", need}].present; }
  void RemovePresent(const ShapePtr& need, kube::TimePoint now);
  // An earlier process planned the pods with owners that were seen so far: they are no competition.
  void ForgetOwners();

  // Whether some place of `gang` could be taken from it. One that asks for devices (GPUs and their like): if anybody
  // asks for such. Else: if all that suit the place's node, together, do not fit beside what is held and planned there.
  bool Threatens(const std::string& gang, kube::TimePoint now) const;
  // Whether a node of its places could hold such a pod.
  bool Suits(const ShapePtr& need, const std::string& gang) const;
  // As Threatens(), for what the scheduler is at, of that priority or more, since before `held`. Places or not: nothing
  // keeps a pod that is not nominated to the place that is planned for it.
  bool IsAtOneOf(const std::vector<Place>& places, const std::string& gang, int priority, kube::TimePoint held,
                 kube::TimePoint now) const;
  // Whether a pod without an owner waits for an accelerator, and the scheduler found no place for it.
  bool DoesAnyoneWaitForDevice() const;
  std::size_t kinds() const { return kinds_.size(); }

 private:
  struct Kind {
    int waiting = 0, present = 0;
    // Of nobody: when those that wait no longer were bound or gone. Of an owner: when those came that had no place. The
    // oldest first.
    std::deque<kube::TimePoint> recent;
    kube::TimePoint about_until{};  // After the last of those that did not wait.
    bool IsAbout(kube::TimePoint now) const { return present > 0 || now < about_until; }
    bool Counts(kube::TimePoint now) const { return waiting > 0 || IsAbout(now) || !recent.empty(); }
  };
  struct Demand {
    const PodShape* need;
    int waiting, recent;    // So many together.
    bool is_about = false;  // One more may come, of any of these kinds.
  };
  int ExcessOf(const std::string& owner) const;  // How many wait beyond its places.
  void Sweep(kube::TimePoint now);
  void WaitsNoMore(const WaitingPod& pod, kube::TimePoint now);
  std::vector<Demand> DemandAgainst(const std::string& gang, kube::TimePoint now) const;
  bool IsTooMuch(const std::vector<Demand>& demands, const std::vector<Place>& places) const;

  const ClusterLedger& ledger_;
  std::unordered_map<std::string, WaitingPod> pods_;        // By UID.
  std::map<std::pair<std::string, ShapePtr>, Kind> kinds_;  // By owner (nobody: empty), and what they need.
  kube::TimePoint swept_at_{};
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Which pods could take a place that is planned for a gang: those without a place of their own in the ledger.
//
// These are all pods outside our gangs and jobs and, of each gang or job, as many as wait beyond its places: members
// that somebody created without a gate, for example. A pod that waits for a node can take a place now; more pods like
// those of the last ten minutes may come. If pods of a kind run, or wait at a foreign gate, one more of the kind may
// come at any time.
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
  ShapePtr need;      // See AloneOf(). Equal needs share a pointer.
  int priority = 0;
  bool is_undecided = false;             // The scheduler may be deciding on it: it is not marked unschedulable.
  bool is_one_off = false;               // It does not mean that more pods like it will come.
  bool is_nominated = false;             // The scheduler tries the nominated node first.
  kube::TimePoint undecided_since = {};  // Set by Competition.
};

class Competition {
 public:
  explicit Competition(const ClusterLedger& ledger) : ledger_(ledger) {}

  // A new or changed pod. True: it could take a place, and is new or the scheduler decides on it again.
  bool Put(const std::string& uid, WaitingPod pod, kube::TimePoint now);
  // The pod is bound, gated or gone. REQUIRES: called before Bind() of the ledger. False: it was not known to wait.
  bool Remove(const std::string& uid, kube::TimePoint now);
  // Null: the pod is not known to wait.
  ShapePtr NeedOf(const std::string& uid) const;
  // A pod of this owner was bound without being seen to wait, because its events came late.
  void AddBound(const std::string& owner, const ShapePtr& need, kube::TimePoint now);
  // A pod without an owner that does not wait for a node; removed when it is gone or starts to wait.
  void AddPresent(const ShapePtr& need) { ++kinds_[{"", need}].present; }
  void RemovePresent(const ShapePtr& need, kube::TimePoint now);
  // The pods with owners that were seen so far were planned by an earlier process: they are no competition.
  void ForgetOwners();

  // Whether pods could take a place of `gang`: of a place that asks for a device (a GPU or the like), any pod that
  // suits its node and asks for such a device; otherwise, if all pods that suit its node do not fit together beside
  // what is bound and planned there.
  bool Threatens(const std::string& gang, kube::TimePoint now) const;
  // Whether a node of its places accepts such a pod.
  bool Suits(const ShapePtr& need, const std::string& gang) const;
  // As Threatens(), by pods of that priority or higher on which the scheduler may have been deciding since before
  // `since`, when the places were protected. Pods that have places count, too, unless they are nominated: nothing else
  // keeps them to their places.
  bool MayTakeOneOf(const std::vector<Place>& places, const std::string& gang, int priority, kube::TimePoint since,
                    kube::TimePoint now) const;
  // Whether the scheduler found no place for a pod without an owner that asks for an accelerator.
  bool DoesAnyoneWaitForDevice() const;

 private:
  struct Kind {
    int waiting = 0, present = 0;
    // Without an owner: when pods stopped waiting. With one: when pods came that had no place. Oldest first.
    std::deque<kube::TimePoint> recent;
    kube::TimePoint about_until{};  // One more may come until then, after present pods have gone.
    bool IsAbout(kube::TimePoint now) const { return present > 0 || now < about_until; }
    bool Counts(kube::TimePoint now) const { return waiting > 0 || IsAbout(now) || !recent.empty(); }
  };
  struct Demand {
    const PodShape* need;
    int waiting, recent;    // Numbers of pods.
    bool is_about = false;  // One more may come; of all kinds together only one.
  };
  int ExcessOf(const std::string& owner) const;  // How many pods wait beyond its places.
  void Sweep(kube::TimePoint now);
  void StopCounting(const WaitingPod& pod, kube::TimePoint now);
  std::vector<Demand> DemandAgainst(const std::string& gang, kube::TimePoint now) const;
  bool IsTooMuch(const std::vector<Demand>& demands, const std::vector<Place>& places) const;

  const ClusterLedger& ledger_;
  std::unordered_map<std::string, WaitingPod> pods_;        // By UID.
  std::map<std::pair<std::string, ShapePtr>, Kind> kinds_;  // By owner (nobody: empty), and what they need.
  kube::TimePoint swept_at_{};
};

}  // namespace grus

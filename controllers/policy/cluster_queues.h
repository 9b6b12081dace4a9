// SPDX-License-Identifier: Apache-2.0
// The queues over the ledger: in which queue everybody is who holds or wants GPUs, and what they use of each pool.
//
// Pods that belong to no job or gang count in the queue of their namespace. A job or gang that may not be in the queue
// that it names counts in the default queue, and does not start. A launcher counts with its job. Without queues, pools
// and jobs whose speed is known by size (is_active()) it counts nothing.
//
// Pure; the owner serialises access. After changes of nodes or of the setup it counts anew, when it is asked next.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "controllers/policy/cluster_ledger.h"
#include "controllers/policy/owner_names.h"
#include "controllers/policy/waiting_demand.h"
#include "controllers/queues/fair_share.h"
#include "controllers/queues/queue_admission.h"
#include "controllers/queues/queue_setup.h"

namespace grus {

class ClusterQueues final : public HoldingsObserver {
 public:
  explicit ClusterQueues(ClusterLedger& ledger) : ledger_(ledger) {}

  // False: it is the same as before.
  bool SetUp(QueueSetup setup);
  bool is_active() const { return !setup_.queues.empty() || !setup_.pools.empty() || curves_ > 0; }
  std::uint64_t version() const { return version_; }  // Changes with the setup.
  const QueueSetup& setup() const { return setup_; }

  // True: something changed.
  bool PutHolder(const std::string& owner, const Holder& holder);
  void RemoveHolder(const std::string& owner);
  const Holder& HolderOf(const std::string& owner) const;  // Of one that is not known: says nothing.

  std::vector<PoolRoom> RoomByPool();  // Counts all nodes.

  // REQUIRES for what follows: is_active().
  const QueueTree& tree() { return Counted().use->tree(); }
  const QueueUse& use() { return *Counted().use; }  // With what ClaimFor() and SetReserved() keep.
  // The queue that it starts from; the error says why it does not start.
  kube::Result<QueueIndex> QueueOf(const std::string& owner);
  std::int64_t MilliOf(const Resources& request, PoolIndex pool) const;
  PoolPlacement PlacementIn(PoolIndex pool) const;
  bool IsPreemptible(const std::string& owner) const;
  PoolIndex HomeOf(const std::string& owner);  // Where it holds most GPUs; kNoPool: it holds none.
  // How many more GPUs it may take, by the quotas of its queue.
  std::int64_t HeadroomOf(const std::string& owner, PoolIndex pool, bool is_preemptible);

  // Keeps GPUs for an owner that waits, as if it used them; nullopt: not any more.
  void ClaimFor(const std::string& owner, std::optional<PoolNeed> claim) { Charge(claims_, owner, claim); }
  const Charges& claims() const { return claims_; }
  // Of the room that is reserved for it, what is idle counts as if it used it; nullopt: nothing.
  void SetReserved(const std::string& owner, std::optional<PoolNeed> idle) { Charge(reserved_, owner, idle); }
  const Charges& reserved() const { return reserved_; }

  // What it is to give up counts as yielding; nullopt: it keeps all.
  void SetYield(const std::string& owner, std::optional<YieldNotice> notice);
  const std::map<std::string, YieldNotice>& yields() const { return notices_; }
  std::vector<std::string> TakeTakenBack() { return std::exchange(taken_back_, {}); }
  bool HasYielded(const std::string& owner);  // What is left is no more than the notice says.

  std::vector<ReclaimJob> JobsIn(PoolIndex pool, std::int64_t now);
  // Jobs that run, want more workers, and whose queue has less than its guarantee: so much of it.
  std::vector<WaitingDemand> GrowthIn(PoolIndex pool, std::int64_t now);
  // Workers that jobs should have, as the planner of sizes says; nullopt: as many as they can get.
  void SetTargets(std::map<std::string, int> targets) { targets_ = std::move(targets); }
  const std::map<std::string, int>& targets() const { return targets_; }
  std::optional<int> TargetOf(const std::string& owner) const;
  // All jobs whose speed is known by size.
  std::vector<SizedJob> SizedJobs();
  std::int64_t MinimumRuntimeOf(const std::string& owner);               // Seconds, by its queue.
  std::optional<RuntimeLimit> RuntimeLimitOf(const std::string& owner);  // nullopt: its queue sets none.
  std::map<std::string, RuntimeLimit> RuntimeLimits();                   // By holder.
  // By queue: what its own jobs use, and what they and those that wait would use if they got all that they want.
  std::vector<QueueDemand> DemandIn(PoolIndex pool, std::span<const WaitingDemand> waiting);
  QueuesReport Report(std::span<const WaitingDemand> waiting);  // These are in order.

  std::string PoolOf(const NodeState& node) const override;
  PoolPlacement PlacementIn(const std::string& pool) const override;
  void OnNode(const LedgerNode& node) override;
  void OnHeld(const LedgerNode& node, const std::string& owner, const Resources& request, int sign) override;
  void OnEnding(const LedgerNode& node, const std::string& owner, const Resources& request, int sign) override;

 private:
  // What one holder has, with its launcher.
  struct Account {
    const Holder* holder = nullptr;  // Never null.
    QueueIndex queue = kNoQueue;
    bool is_on_closed_node = false;                       // In part: ending that frees nothing.
    bool is_misplaced = false;                            // It names a queue that it may not be in.
    std::vector<std::int64_t> held, ending, of_launcher;  // By pool. `held` is all.
    std::vector<UsedGpus> counted;                        // By pool: what `use` has of it.
  };
  struct Count {
    std::optional<QueueTree> tree;
    std::optional<QueueUse> use;
    std::unordered_map<std::string, Account> accounts;
    std::unordered_map<std::string, std::vector<std::string>> selected_by;  // By namespace.
    std::vector<PoolReport> pools;
  };

  void Charge(Charges& charges, const std::string& owner, std::optional<PoolNeed> need);
  void CountCharges(Charges& charges);
  void CountCurves(int change);
  Count& Counted();
  void CountAnew();
  void FindDefaultResource();
  void CountNodes();
  kube::Result<QueueIndex> FindQueue(const std::string& owner, const QueueTree& tree) const;
  Account& AccountOf(const std::string& owner);
  Account& AddHeld(const std::string& owner, PoolIndex pool, std::int64_t milli);
  void Recount(const std::string& owner, Account& account);
  static std::int64_t WorkerMilli(const Account& account, PoolIndex pool);
  void ReportQueue(QueueIndex queue, const std::vector<std::vector<std::int64_t>>& shares, QueueReport& report) const;
  void ReportWaiting(const WaitingDemand& wait, QueuesReport& report) const;

  ClusterLedger& ledger_;
  QueueSetup setup_;
  std::uint64_t version_ = 1;
  std::string default_resource_;  // That the default pool counts.
  bool is_stale_ = true;
  int curves_ = 0;  // Holders that have one.
  Count count_;
  std::unordered_map<std::string, Holder> holders_;
  Charges claims_, reserved_;
  std::map<std::string, YieldNotice> notices_;
  std::vector<std::string> taken_back_;  // Owners whose notice a change of pools took back.
  std::map<std::string, int> targets_;
  std::unordered_map<std::string, std::vector<std::int64_t>> stays_;  // By owner with a notice: what stays, by pool.
};

}  // namespace grus

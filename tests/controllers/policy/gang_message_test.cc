// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/gang_message.h"

#include <gtest/gtest.h>

#include "crds/types/sharing_names.h"
#include "tests/kit/shapes.h"

namespace grus {
namespace {

GangStanding Waiting() {
  GangStanding standing;
  standing.position = 2;
  standing.capacity = 8;
  standing.fitting = 5;
  standing.lacking = kGpuResource;
  standing.lacking_free = 11;
  standing.lacking_total = 32;
  standing.eligible_nodes = 4;
  standing.uses = {{"team-b/resnet", 16}, {"", 5}};
  return standing;
}

TEST(WhyPending, SaysInOneSentenceWhatIsMissing) {
  struct Case {
    const char* rule;
    void (*change)(GangDemand&, GangStanding&);
    const char* want;
  };
  const Case kCases[] = {
      {"held by others", [](GangDemand&, GangStanding&) {},
       "8 members need 16 nvidia.com/gpu; 5 of 8 have room: 21 of 32 GPUs are held, 16 by team-b/resnet, "
       "5 by other pods; second in the queue"},
      {"the time is known",
       [](GangDemand&, GangStanding& s) {
         s.position = 1;
         s.has_reservation = true;
         s.expected_start = 1'795'255'200;
       },
       "8 members need 16 nvidia.com/gpu; 5 of 8 have room: 21 of 32 GPUs are held, 16 by team-b/resnet, "
       "5 by other pods; first in the queue, what becomes free is kept from other gangs and jobs; expected to start "
       "at 2026-11-21T10:00:00Z"},
      {"one yields as a whole",
       [](GangDemand&, GangStanding& s) {
         s.has_reservation = true;
         s.yields = YieldAnswer{ReclaimOutcome::kReclaimed, {"b/g3"}, 1'795'255'200};
       },
       "8 members need 16 nvidia.com/gpu; 5 of 8 have room: 21 of 32 GPUs are held, 16 by team-b/resnet, "
       "5 by other pods; second in the queue, what becomes free is kept from other gangs and jobs; b/g3 gives GPUs "
       "to it by 2026-11-21T10:00:00Z"},
      {"many give workers up",
       [](GangDemand&, GangStanding& s) {
         s.queue_refusal = "queue a may use 8 GPUs";
         s.yields = YieldAnswer{ReclaimOutcome::kFree, {"b/1", "b/2", "b/3", "b/4", "b/5"}, 0};
       },
       "8 members need 16 nvidia.com/gpu; queue a may use 8 GPUs; second in the queue; b/1, b/2, b/3 and 2 more give "
       "GPUs to it"},
      {"nobody has to yield",
       [](GangDemand&, GangStanding& s) { s.yields = YieldAnswer{.outcome = ReclaimOutcome::kNotEntitled}; },
       "8 members need 16 nvidia.com/gpu; 5 of 8 have room: 21 of 32 GPUs are held, 16 by team-b/resnet, "
       "5 by other pods; second in the queue; no other queue has to yield to it"},
      {"too few may yield",
       [](GangDemand&, GangStanding& s) { s.yields = YieldAnswer{.outcome = ReclaimOutcome::kNotEnough}; },
       "8 members need 16 nvidia.com/gpu; 5 of 8 have room: 21 of 32 GPUs are held, 16 by team-b/resnet, "
       "5 by other pods; second in the queue; too few of those that run may be stopped for it now"},
      {"reserved", [](GangDemand&, GangStanding& s) { s.blocked_by = "team-a/gpt"; },
       "8 members need 16 nvidia.com/gpu; 5 of 8 have room: the rest is reserved for team-a/gpt; second in the queue"},
      {"another resource",
       [](GangDemand&, GangStanding& s) {
         s.lacking = "cpu";
         s.lacking_free = 500;
         s.lacking_total = 64'000;
         s.position = 12;
       },
       "8 members need 8 cpu; 5 of 8 have room: 63500m of 64 cpu are held; 12th in the queue"},
      {"constraints", [](GangDemand&, GangStanding& s) { s.lacking = ""; },
       "8 members need 16 nvidia.com/gpu; 5 of 8 have room: its affinity, spread or host ports, or those of "
       "other pods, leave no place for the rest; second in the queue"},
      {"never: too much in all",
       [](GangDemand& d, GangStanding& s) {
         d = Gang("t/g", 5, 8);
         s.can_never_fit = true;
         s.capacity = 4;
       },
       "needs 40 nvidia.com/gpu; the nodes it may use have 32 in all: lower minMember or add nodes"},
      {"never: too much for a node",
       [](GangDemand& d, GangStanding& s) {
         d = Gang("t/g", 1, 16);
         s.can_never_fit = true;
         s.eligible_nodes = 0;
         s.capacity = 0;
       },
       "no node can hold a member that asks for 16 nvidia.com/gpu; check its resources, node selector, affinity and "
       "tolerations"},
      {"never: it may be for want of any of several resources",
       [](GangDemand& d, GangStanding& s) {
         PodShape shape = GpuPod(1);
         shape.request.AddExtended("rdma/hca", 2);
         d = Gang("t/g", 2, Shared(shape));
         PodShape launcher;  // Asks for no devices.
         launcher.request.AddExtended("ephemeral-storage", 1 << 20);
         d.members.push_back(Shared(launcher));
         s.can_never_fit = true;
         s.eligible_nodes = 0;
         s.capacity = 0;
       },
       "no node can hold a member that asks for 1 nvidia.com/gpu and 2 rdma/hca; check its resources, node selector, "
       "affinity and tolerations"},
      {"never: neither part of a GPU nor whole ones",
       [](GangDemand& d, GangStanding& s) {
         PodShape shape = GpuPod(0);
         shape.request.AddExtended(api::kGpuMilliResource, 1500);
         d = Gang("t/g", 1, Shared(shape));
         s.can_never_fit = true;
         s.eligible_nodes = 0;
         s.capacity = 0;
       },
       "no node can hold a member that asks for 1500 ai.centauruscloud.io/gpu-milli; let its containers ask for parts "
       "that fit on one GPU together, or all of them for multiples of 1000: whole GPUs"},
      {"whole GPUs are free in sum, and not together",
       [](GangDemand& d, GangStanding& s) {
         PodShape shape = GpuPod(0);
         shape.request.AddExtended(api::kGpuMilliResource, 2000);
         d = Gang("t/g", 1, Shared(shape));
         s.fitting = 0;
         s.lacking = api::kGpuMilliResource;
         s.lacking_free = 3000;
         s.lacking_total = 8000;
       },
       "1 member needs 2000 ai.centauruscloud.io/gpu-milli; 0 of 1 have room: 3000 of 8000 "
       "ai.centauruscloud.io/gpu-milli are free, but no node has the part or the whole GPUs of one more member, with "
       "all "
       "else that it asks for; second in the queue"},
      {"never: members of two kinds",
       [](GangDemand& d, GangStanding& s) {
         d = Gang("t/g", 1, 16);
         d.members.push_back(Gang("t/g", 1, 2).members.front());
         s.can_never_fit = true;
         s.eligible_nodes = 0;
         s.capacity = 0;
       },
       "no node can hold a member; check its resources, node selector, affinity and tolerations"},
      {"never: pieces",
       [](GangDemand& d, GangStanding& s) {
         d = Gang("t/g", 5, 5);
         s.can_never_fit = true;
         s.capacity = 4;
       },
       "needs room for 5 members; the 4 nodes it may use can hold 4 even when empty: lower minMember or add nodes"},
      {"volumes",
       [](GangDemand& d, GangStanding&) {
         PodShape shape = GpuPod(2);
         shape.volume_affinity.resize(1);
         d = Gang("t/g", 8, Shared(shape));
       },
       "8 members need 16 nvidia.com/gpu; 5 of 8 have room: 21 of 32 GPUs are held, 16 by team-b/resnet, "
       "5 by other pods; only nodes where its volumes can be used count; second in the queue"},
      {"one member",
       [](GangDemand& d, GangStanding& s) {
         d = Gang("t/g", 1, 2);
         s.fitting = 0;
         s.uses.clear();
       },
       "1 member needs 2 nvidia.com/gpu; 0 of 1 have room: 21 of 32 GPUs are held; second in the queue"},
  };
  for (const Case& c : kCases) {
    GangDemand demand = Gang("t/g", 8, 2);
    GangStanding standing = Waiting();
    c.change(demand, standing);
    const PendingWords words{.minimum = demand.needed > 1 ? "minMember" : ""};
    EXPECT_EQ(WhyPending(demand, standing, words), c.want) << c.rule;
  }
}

TEST(WhyNoRoom, SpeaksInTheWordsOfWhatWaits) {
  const PendingWords words{.member = "worker", .pod = "pod", .minimum = "minReplicas"};
  GangStanding standing = Waiting();
  EXPECT_EQ(WhyNoRoom(Gang("t/g", 8, 2), standing, words),
            "5 of 8 have room: 21 of 32 GPUs are held, 16 by team-b/resnet, 5 by other pods; second in the queue");
  standing.can_never_fit = true;
  standing.capacity = 4;
  standing.closed = {"real-0"};
  EXPECT_EQ(WhyNoRoom(Gang("t/g", 8, 2), standing, words),
            "5 of 8 have room: node real-0 is not ready or cordoned; second in the queue");
  standing.closed.clear();
  EXPECT_EQ(WhyNoRoom(Gang("t/g", 5, 5), standing, words),
            "needs room for 5 pods; the 4 nodes it may use can hold 4 even when empty: lower minReplicas or add nodes");
}

}  // namespace
}  // namespace grus

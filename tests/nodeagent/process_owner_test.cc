// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/process_owner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "tests/nodeagent/fake_proc.h"

namespace grus {
namespace {

using testing::ContainerId;
using testing::FakeProc;

const std::string kUidA = "aaaaaaaa-0000-0000-0000-000000000001", kUidB = "bbbbbbbb-0000-0000-0000-000000000002";

class MapOfNames final : public PodNames {
 public:
  std::optional<PodName> Find(const PodOfProcess& pod) const override {
    const auto found = names.find(pod.pod_uid);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  }
  std::map<std::string, PodName> names;
};

class ProcessOwnersTest : public ::testing::Test {
 protected:
  ProcessOwnersTest() {
    names_.names[kUidA] = {"team-a", "bert-0", "main"};
    names_.names[kUidB] = {"team-b", "gpt-0", "main"};
  }
  // One round that looks at this process alone, for a driver that was asked at this tick.
  ProcessOwners::Found Look(int pid, ProcessOwners::Ticks asked_at) {
    owners_.BeginRound(asked_at);
    const ProcessOwners::Found found = owners_.Find(pid);
    owners_.EndRound();
    return found;
  }
  std::string PodOf(int pid, ProcessOwners::Ticks asked_at) {
    const ProcessOwners::Found found = Look(pid, asked_at);
    return found.owner ? found.owner->name.pod : "nobody's";
  }

  FakeProc proc_;
  MapOfNames names_;
  ProcessOwners owners_{proc_.path(), names_};
};

TEST_F(ProcessOwnersTest, NamesPodAndContainerOfAProcess) {
  proc_.PutInPod(7, 100, kUidA, ContainerId('1'));

  const ProcessOwners::Found found = Look(7, 200);

  ASSERT_TRUE(found.owner);
  EXPECT_EQ(found.owner->pod, (PodOfProcess{kUidA, ContainerId('1')}));
  EXPECT_EQ(found.owner->name, (PodName{"team-a", "bert-0", "main"}));
}

TEST_F(ProcessOwnersTest, AProcessThatEndedIsNobodys) {
  EXPECT_EQ(PodOf(7, 200), "nobody's");
  proc_.PutInPod(7, 100, kUidA, ContainerId('1'));
  EXPECT_EQ(PodOf(7, 200), "bert-0");
  proc_.End(7);
  EXPECT_EQ(PodOf(7, 300), "nobody's");
}

TEST_F(ProcessOwnersTest, AProcessThatWaitsToBeReapedHasEnded) {
  for (const char state : {'Z', 'X'}) {
    proc_.Put(7, 100, "0::/kubepods/pod" + kUidA + "/" + ContainerId('1') + "\n", "python", state);
    EXPECT_EQ(PodOf(7, 200), "nobody's") << state;
  }
}

TEST_F(ProcessOwnersTest, ThePidOfAnEndedProcessNamesTheNextOneAtOnce) {
  proc_.PutInPod(7, 100, kUidA, ContainerId('1'));
  ASSERT_EQ(PodOf(7, 200), "bert-0");
  proc_.PutInPod(7, 250, kUidB, ContainerId('2'));

  const ProcessOwners::Found found = Look(7, 300);

  ASSERT_TRUE(found.owner);
  EXPECT_EQ(found.owner->name.pod, "gpt-0");
  EXPECT_FALSE(found.was_there) << "what the driver counted over the last second may be the other's";
}

TEST_F(ProcessOwnersTest, AProcessThatBeganAfterTheDriverWasAskedIsNotTheOneItSaw) {
  proc_.PutInPod(7, 300, kUidB, ContainerId('2'));
  EXPECT_EQ(PodOf(7, 299), "nobody's");
  EXPECT_EQ(PodOf(7, 300), "nobody's") << "in the same tick: nobody knows";
  EXPECT_EQ(PodOf(7, 301), "gpt-0");
}

TEST_F(ProcessOwnersTest, SaysWhetherTheProcessWasThereInTheRoundBefore) {
  proc_.PutInPod(7, 100, kUidA, ContainerId('1'));
  EXPECT_FALSE(Look(7, 200).was_there);
  EXPECT_TRUE(Look(7, 300).was_there);
  Look(8, 400);
  EXPECT_FALSE(Look(7, 500).was_there);
}

TEST_F(ProcessOwnersTest, AProcessOnSeveralGpusIsTheSameInOneRound) {
  proc_.PutInPod(7, 100, kUidA, ContainerId('1'));
  Look(7, 200);
  owners_.BeginRound(300);

  const ProcessOwners::Found first = owners_.Find(7), second = owners_.Find(7);

  EXPECT_EQ(first.owner, second.owner);
  EXPECT_TRUE(first.was_there);
  EXPECT_TRUE(second.was_there);
}

TEST_F(ProcessOwnersTest, AProcessOutsideOfPodsIsKnownToBeNoPods) {
  proc_.Put(7, 100, "0::/system.slice/display-manager.service\n");

  const ProcessOwners::Found found = Look(7, 200);

  ASSERT_TRUE(found.owner);
  EXPECT_FALSE(found.owner->is_pod());
}

TEST_F(ProcessOwnersTest, AProgramsNameMayLookLikeTheFieldsBehindIt) {
  proc_.Put(7, 100, "0::/kubepods/pod" + kUidA + "/" + ContainerId('1') + "\n", "a) Z 1 1 (b");
  EXPECT_EQ(PodOf(7, 200), "bert-0");
}

TEST_F(ProcessOwnersTest, ANameThatComesLaterIsFound) {
  const PodName late = names_.names[kUidA];
  names_.names.erase(kUidA);
  proc_.PutInPod(7, 100, kUidA, ContainerId('1'));
  const ProcessOwners::Found before = Look(7, 200);
  ASSERT_TRUE(before.owner);
  EXPECT_TRUE(before.owner->is_pod());
  EXPECT_EQ(before.owner->name, PodName{});

  names_.names[kUidA] = {late.ns, late.pod, ""};
  EXPECT_EQ(Look(7, 300).owner->name, (PodName{late.ns, late.pod, ""})) << "the container's status is not written yet";
  names_.names[kUidA] = late;
  EXPECT_EQ(Look(7, 400).owner->name, late);
}

TEST_F(ProcessOwnersTest, ANameStaysWhenThePodIsDeletedByForceAndRunsOn) {
  proc_.PutInPod(7, 100, kUidA, ContainerId('1'));
  ASSERT_EQ(PodOf(7, 200), "bert-0");
  names_.names.clear();
  EXPECT_EQ(PodOf(7, 300), "bert-0");
}

TEST_F(ProcessOwnersTest, FilesThatMakeNoSenseNameNobody) {
  for (const char* stat :
       {"", "7", "7 (python", "7 (python) S", "7 (python) S 1 1 1 0 -1 1 1 1 1 1 1 1 1 1 1 1 1 1 x 1"}) {
    kube::testing::TempDir folder;
    folder.Write("7/stat", stat);
    folder.Write("7/cgroup", "0::/kubepods/pod" + kUidA + "/" + ContainerId('1') + "\n");
    ProcessOwners owners(folder.path(), names_);
    owners.BeginRound(200);
    EXPECT_EQ(owners.Find(7).owner, nullptr) << stat;
  }
}

TEST(ProcessOwners, ReadsTheKernelsOwnFiles) {
  const MapOfNames names;
  ProcessOwners owners("/proc", names);

  owners.BeginRound(ProcessOwners::NowTicks() + 1);  // This process may have begun in this tick.

  EXPECT_NE(owners.Find(getpid()).owner, nullptr);
  owners.BeginRound(1);
  EXPECT_EQ(owners.Find(getpid()).owner, nullptr) << "it began later than 10 ms after the machine";
}

}  // namespace
}  // namespace grus

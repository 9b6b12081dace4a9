// SPDX-License-Identifier: Apache-2.0
// Rule: past its part a container may have managed memory, as much as it was given of that; both limits hold to the
// byte, for all its processes together.
#include <fstream>

#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

constexpr char kRefused[] = "error 2";

std::string Mib(std::uint64_t number) { return std::to_string(number * kMiB); }
std::string Text(std::uint64_t number) { return std::to_string(number); }

// A GPU of 1,000 MiB: of 400 as its part, of which a context takes 10, and of 700 past it.
class PagedLimitTest : public LimitedTest {
 protected:
  static constexpr std::uint64_t kPart = 400 * kMiB, kPaged = 700 * kMiB;
  static fake::WorldSetup World() { return {.gpus = {1000 * kMiB}, .context_bytes = 10 * kMiB}; }
  void SharePaged(const fake::WorldSetup& setup = World()) { Share(setup, {kPart}, 0, kPaged); }
  // A program that has all of its part.
  std::unique_ptr<fake::ClientProcess> StartFull() {
    auto client = Start();
    client->Ask("start");
    EXPECT_THAT(client->Ask("alloc " + Mib(390)), StartsWith("ok"));
    EXPECT_EQ(Counted(0), kPart);
    EXPECT_EQ(Counted(1), 0U);
    EXPECT_EQ(world_->Managed(0), 0U);
    return client;
  }
  std::uint64_t InAll() { return world_->Used(0) + world_->InHost(0); }
};

TEST_F(PagedLimitTest, BothLimitsHoldToTheByte) {
  SharePaged();
  const auto client = StartFull();
  EXPECT_THAT(client->Ask("alloc 1"), StartsWith("ok"));
  EXPECT_EQ(Counted(0), kPart);
  EXPECT_EQ(Counted(1), 512U);
  EXPECT_EQ(world_->Managed(0), 512U);
  EXPECT_EQ(client->Ask("alloc " + Text(kPaged - 511)), kRefused);
  EXPECT_THAT(client->Ask("alloc " + Text(kPaged - 512)), StartsWith("ok"));
  EXPECT_EQ(Counted(1), kPaged);
  EXPECT_EQ(client->Ask("alloc 1"), kRefused);
  EXPECT_EQ(InAll(), kPart + kPaged);
  EXPECT_EQ(world_->Used(0), 1000 * kMiB);
  EXPECT_EQ(Account(0).refused, 0U) << "what was had past the part was not refused";
  EXPECT_EQ(Account(1).refused, 2U);
}

TEST_F(PagedLimitTest, WhatThePartHasNoRoomForIsPagedAsAWhole) {
  SharePaged();
  const auto client = Start();
  client->Ask("start");
  EXPECT_THAT(client->Ask("alloc " + Mib(391)), StartsWith("ok"));
  EXPECT_EQ(Counted(0), 10 * kMiB);
  EXPECT_EQ(Counted(1), 391 * kMiB);
  EXPECT_THAT(client->Ask("alloc " + Mib(390)), StartsWith("ok"));
  EXPECT_EQ(Counted(0), kPart);
  EXPECT_EQ(client->Ask("alloc " + Mib(310)), kRefused) << "309 are left, and none of the part";
}

TEST_F(PagedLimitTest, AllProcessesOfAContainerShareBothLimits) {
  SharePaged();
  const auto first = StartFull(), second = Start();
  EXPECT_EQ(second->Ask("start"), kRefused) << "a context is never paged";
  EXPECT_EQ(first->Ask("reset"), "ok");
  EXPECT_THAT(second->Ask("start"), StartsWith("ok"));
  first->Ask("retain");
  EXPECT_THAT(first->Ask("alloc " + Mib(380)), StartsWith("ok"));
  EXPECT_THAT(first->Ask("alloc " + Mib(200)), StartsWith("ok"));
  EXPECT_EQ(Counted(0), kPart);
  EXPECT_EQ(second->Ask("alloc " + Mib(501)), kRefused);
  EXPECT_THAT(second->Ask("alloc " + Mib(500)), StartsWith("ok"));
  EXPECT_EQ(Counted(1), kPaged);
  first->Kill();
  EXPECT_THAT(second->Ask("alloc " + Mib(390)), StartsWith("ok")) << "the dead have nothing,";
  EXPECT_THAT(second->Ask("alloc " + Mib(200)), StartsWith("ok")) << "paged or not";
  EXPECT_EQ(Counted(0), kPart);
  EXPECT_EQ(Counted(1), kPaged);
  EXPECT_EQ(InAll(), Counted(0) + Counted(1));
}

TEST_F(PagedLimitTest, WhatIsAboutToBeTakenNobodyElseGets) {
  SharePaged();
  const auto client = StartFull();
  world_->HoldBefore("cuMemAllocManaged");
  EXPECT_EQ(client->Ask("beside alloc " + Mib(400)), "ok");
  world_->AwaitHeld();
  EXPECT_EQ(client->Ask("alloc " + Mib(301)), kRefused);
  EXPECT_THAT(client->Ask("alloc " + Mib(300)), StartsWith("ok"));
  EXPECT_EQ(Counted(1), kPaged);
  world_->LetGo();
  EXPECT_THAT(client->Ask("join"), StartsWith("ok"));
  EXPECT_EQ(Counted(1), kPaged);
  EXPECT_EQ(InAll(), kPart + kPaged);
}

TEST_F(PagedLimitTest, AFreeGivesBackWhereItWasTaken) {
  SharePaged();
  const auto client = StartFull();
  const std::string paged = client->Ask("alloc " + Mib(100)).substr(3);
  const std::string managed = client->Ask("managed " + Mib(50)).substr(3);
  EXPECT_EQ(Counted(1), 150 * kMiB);
  EXPECT_EQ(client->Ask("free " + paged), "ok");
  EXPECT_EQ(Counted(0), kPart);
  EXPECT_EQ(Counted(1), 50 * kMiB);
  EXPECT_EQ(client->Ask("freeasync " + managed), "ok");
  EXPECT_EQ(Counted(1), 0U);
  EXPECT_EQ(client->Ask("free " + paged), "error 1") << "once";
  EXPECT_EQ(Counted(0), kPart);

  EXPECT_THAT(client->Ask("alloc " + Mib(100)), StartsWith("ok"));
  EXPECT_EQ(client->Ask("reset"), "ok");
  EXPECT_EQ(Counted(0), 0U);
  EXPECT_EQ(Counted(1), 0U);
  EXPECT_EQ(InAll(), 0U);
}

TEST_F(PagedLimitTest, ManagedMemoryThatAProgramAsksForIsOfThePartWhileThatHasRoom) {
  SharePaged();
  const auto client = Start();
  client->Ask("start");
  EXPECT_THAT(client->Ask("managed " + Mib(390)), StartsWith("ok"));
  EXPECT_EQ(Counted(0), kPart);
  EXPECT_THAT(client->Ask("managed " + Mib(700)), StartsWith("ok"));
  EXPECT_EQ(Counted(1), kPaged);
  EXPECT_EQ(client->Ask("managed 1"), kRefused);
}

TEST_F(PagedLimitTest, RowsOfPagedMemoryBeginAtMultiplesOf512) {
  SharePaged();
  const auto client = StartFull();
  EXPECT_EQ(client->Get("pitch 1000 300", 2), 1024U);
  EXPECT_EQ(Counted(1), 1024U * 300);
  EXPECT_EQ(client->Get("pitch 512 1", 2), 512U);
  EXPECT_EQ(Counted(1), 1024U * 300 + 512);
  EXPECT_EQ(world_->Managed(0), Counted(1));
  EXPECT_EQ(client->Ask("pitch 512 1 5"), "error 1") << "there are no such elements";
  EXPECT_EQ(client->Ask("pitchless 512 1"), "error 1");
  EXPECT_EQ(client->Ask("pitch 512 1433600"), kRefused);
  EXPECT_EQ(Counted(1), 1024U * 300 + 512);
}

TEST_F(PagedLimitTest, WhatCannotBeManagedIsRefusedPastThePart) {
  SharePaged();
  const auto client = StartFull();
  const std::string pool = client->Ask("pool").substr(3), graph = client->Ask("graph").substr(3);
  client->Ask("addalloc " + graph + " 1048576");
  const std::string exec = client->Ask("instantiate " + graph).substr(3);
  for (const std::string& command : {std::string("alloc1 512"), std::string("async 512"), "frompool " + pool + " 512",
                                     "create " + Mib(2), std::string("array 128 2"), std::string("array3d 128 2 3"),
                                     std::string("mipmap 128 2 1 3"), std::string("context"), "launchgraph " + exec}) {
    EXPECT_EQ(client->Ask(command), kRefused) << command;
  }
  EXPECT_EQ(Counted(0), kPart);
  EXPECT_EQ(Counted(1), 0U);
  EXPECT_EQ(InAll(), kPart);
}

TEST_F(PagedLimitTest, WhatPoolsKeepIsUsedBeforeAnythingIsPaged) {
  SharePaged();
  const auto client = Start();
  client->Ask("start");
  client->Ask("threshold " + client->Ask("defaultpool").substr(3) + " 1073741824");
  client->Ask("freeasync " + client->Ask("async " + Mib(320)).substr(3));
  EXPECT_EQ(Counted(0), 330 * kMiB);
  EXPECT_THAT(client->Ask("alloc " + Mib(390)), StartsWith("ok"));
  EXPECT_EQ(Counted(0), kPart);
  EXPECT_EQ(Counted(1), 0U);
}

TEST_F(PagedLimitTest, AGpuThatCannotMoveMemoryWhileKernelsRunRefusesPastThePart) {
  fake::WorldSetup setup = World();
  setup.can_move_managed = false;
  SharePaged(setup);
  const auto client = StartFull();
  EXPECT_EQ(client->Ask("alloc 1"), kRefused);
  EXPECT_EQ(client->Ask("managed 1"), kRefused);
  EXPECT_EQ(client->Ask("pitch 512 1"), kRefused);
  EXPECT_EQ(Account(0).refused, 3U);
  EXPECT_EQ(client->Ask("total"), "ok " + Text(kPart));
  EXPECT_EQ(client->Ask("info"), "ok 0 " + Text(kPart));
}

TEST_F(PagedLimitTest, ManagedMemoryThatTheDriverHasNotIsNoMemoryToWhoDidNotAskForIt) {
  SharePaged();
  const auto client = StartFull();
  world_->Fail("cuMemAllocManaged", 0, 801);
  EXPECT_EQ(client->Ask("alloc 1"), kRefused);
  EXPECT_EQ(client->Ask("pitch 512 1"), kRefused);
  EXPECT_EQ(client->Ask("managed 1"), "error 801") << "who did is told why";
  world_->ForgetFaults();
  world_->Fail("cuMemAllocManaged", 0, 700);
  EXPECT_EQ(client->Ask("alloc 1"), "error 700") << "what a kernel did is not taken for a lack of memory";
  EXPECT_EQ(Counted(1), 0U);
  world_->ForgetFaults();
  EXPECT_THAT(client->Ask("alloc " + Text(kPaged)), StartsWith("ok"));
}

TEST_F(PagedLimitTest, ProgramsAreToldOfBothTogether) {
  SharePaged();
  const auto client = StartFull();
  client->Ask("alloc " + Mib(100));
  EXPECT_EQ(client->Ask("total"), "ok " + Mib(1100));
  EXPECT_EQ(client->Ask("info"), "ok " + Mib(600) + " " + Mib(1100));

  const std::string script = Path() + ".nvml";
  std::ofstream(script) << "gpu uuid=" << fake::FakeWorld::UuidText(0) << " total=" << 1000 * kMiB << " used=0\n";
  std::vector<std::string> environment = Environment();
  environment.push_back("GRUS_FAKE_NVML=" + script);
  fake::ClientProcess monitor(environment);
  const std::string nvml = fake::FakeCudaFolder() + "/../fake-nvml/libnvidia-ml.so.1";
  const std::string told = Mib(1100) + " " + Mib(600) + " " + Mib(500);
  EXPECT_EQ(monitor.Ask("nvml " + nvml), "ok " + told + " " + told);
}

TEST_F(PagedLimitTest, EachStartHasTheLimitsThatWereWrittenForIt) {
  SharePaged();
  StartFull()->Ask("alloc " + Mib(700));
  for (const std::uint64_t paged : {std::uint64_t{300}, std::uint64_t{0}, std::uint64_t{500}}) {
    parts_[0].paged_bytes = paged * kMiB;
    ASSERT_TRUE(folder_->Make(parts_, std::chrono::nanoseconds(2)));
    const auto client = Start();
    client->Ask("start");
    EXPECT_EQ(client->Ask("total"), "ok " + Mib(400 + paged));
    client->Ask("alloc " + Mib(390));
    EXPECT_EQ(client->Ask("alloc " + Mib(paged + 1)), kRefused) << paged;
    if (paged > 0) client->Get("alloc " + Mib(paged));
    EXPECT_EQ(InAll(), (400 + paged) * kMiB);
  }
}

TEST_F(PagedLimitTest, ALimitThatIsCutWhileProgramsRunTakesNothingAwayAndGivesNoMore) {
  SharePaged();
  const auto client = StartFull();
  const std::string pointer = client->Ask("alloc " + Mib(300)).substr(3);
  parts_[0].paged_bytes = 200 * kMiB;
  ASSERT_TRUE(folder_->WriteLimits(parts_, std::chrono::nanoseconds(2)));
  EXPECT_EQ(client->Ask("alloc 1"), kRefused);
  EXPECT_EQ(client->Ask("info"), "ok 0 " + Mib(600));
  EXPECT_EQ(client->Ask("free " + pointer), "ok");
  EXPECT_THAT(client->Ask("alloc " + Mib(200)), StartsWith("ok"));
}

TEST_F(PagedLimitTest, AnotherProgramInItsPlaceHasNothingOfEither) {
  SharePaged();
  const auto client = StartFull();
  client->Ask("alloc " + Mib(100));
  client->Tell("exec");
  EXPECT_THAT(client->Ask("start"), StartsWith("ok"));
  EXPECT_EQ(Counted(0), 10 * kMiB);
  EXPECT_EQ(Counted(1), 0U);
  EXPECT_EQ(InAll(), 10 * kMiB);
}

TEST_F(PagedLimitTest, AChildHasNothingOfItsParentsAndTakesNothingFromIt) {
  SharePaged();
  const auto client = StartFull();
  const std::string pointer = client->Ask("alloc " + Mib(100)).substr(3);
  EXPECT_THAT(client->Ask("fork"), StartsWith("ok"));
  EXPECT_EQ(client->Ask("free " + pointer), "error 3") << "it has no driver";
  EXPECT_EQ(Counted(0), kPart);
  EXPECT_EQ(Counted(1), 100 * kMiB);
}

}  // namespace
}  // namespace grus::cuda

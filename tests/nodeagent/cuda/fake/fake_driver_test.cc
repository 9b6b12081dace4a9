// SPDX-License-Identifier: Apache-2.0
// The fake driver: contexts and plain memory, who pays, and until when. Pools and the like are in fake_memory_test.cc,
// time in fake_clock_test.cc.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include "tests/nodeagent/cuda/fake/fake_test.h"

namespace grus::cuda::fake {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::uint64_t kContext = 300 * kMiB;

using FakeDriverTest = FakeTest;

TEST_F(FakeDriverTest, APlainAllocationIsChargedRoundedUpAndGivenBackWhole) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("start");
  const std::uint64_t pointer = client.Get("alloc 1000");

  EXPECT_EQ(world.UsedBy(client.pid(), 0), kContext + 1024);
  EXPECT_EQ(client.Ask("free " + std::to_string(pointer)), "ok");
  EXPECT_EQ(world.UsedBy(client.pid(), 0), kContext);
}

TEST_F(FakeDriverTest, RowsAreAllocatedAtTheirPitch) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("start");

  EXPECT_EQ(client.Get("pitch 1000 10", 2), 1024U);
  EXPECT_EQ(world.Used(0), kContext + 10240);
}

TEST_F(FakeDriverTest, ManagedMemoryAndThatOfTheFirstInterfaceAreChargedToo) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("start");
  client.Get("managed 512");
  const std::uint64_t small = client.Get("alloc1 512");

  EXPECT_EQ(world.Used(0), kContext + 1024);
  EXPECT_EQ(client.Ask("free1 " + std::to_string(small)), "ok");
  EXPECT_EQ(world.Used(0), kContext + 512);
}

TEST_F(FakeDriverTest, AnAllocationBeyondTheGpuIsOutOfMemoryAndChargesNothing) {
  FakeWorld world(Path(), {.gpus = {400 * kMiB}});
  ClientProcess client({world.Environment()});
  client.Get("start");

  EXPECT_EQ(client.Ask("alloc " + std::to_string(101 * kMiB)), "error 2");
  EXPECT_EQ(client.Ask("alloc 0xffffffffffffffff"), "error 2");
  EXPECT_EQ(world.Free(0), 100 * kMiB);
  EXPECT_THAT(client.Ask("alloc " + std::to_string(100 * kMiB)), StartsWith("ok"));
}

TEST_F(FakeDriverTest, AContextForWhichThereIsNoRoomIsNotMade) {
  FakeWorld world(Path(), {.gpus = {299 * kMiB}});
  ClientProcess client({world.Environment()});

  EXPECT_EQ(client.Ask("start"), "error 2");
  EXPECT_EQ(client.Ask("context"), "error 2");
  EXPECT_EQ(world.Used(0), 0U);
}

TEST_F(FakeDriverTest, WhatWasFreedOrNeverWasCannotBeFreed) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("start");
  const std::string pointer = std::to_string(client.Get("alloc 512"));
  client.Ask("free " + pointer);

  EXPECT_EQ(client.Ask("free " + pointer), "error 1");
  EXPECT_EQ(client.Ask("free 12345"), "error 1");
  EXPECT_EQ(client.Ask("alloc 0"), "error 1");
  EXPECT_EQ(world.Used(0), kContext);
}

TEST_F(FakeDriverTest, AContextTakesItsAllocationsWithIt) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("start");
  client.Get("alloc 512");
  const std::uint64_t context = client.Get("context");
  client.Get("alloc 5120");

  EXPECT_EQ(world.Used(0), 2 * kContext + 512 + 5120);
  EXPECT_EQ(client.Ask("destroy " + std::to_string(context)), "ok");
  EXPECT_EQ(world.Used(0), kContext + 512);
  EXPECT_EQ(client.Ask("destroy " + std::to_string(context)), "error 709");
}

TEST_F(FakeDriverTest, ThePrimaryContextEndsWithItsLastUserOrWithAReset) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("start");
  client.Get("retain");
  client.Get("alloc 512");

  EXPECT_EQ(client.Ask("release"), "ok");
  EXPECT_EQ(world.Used(0), kContext + 512);
  EXPECT_EQ(client.Ask("release"), "ok");
  EXPECT_EQ(world.Used(0), 0U);
  EXPECT_EQ(client.Ask("alloc 512"), "error 709");
  client.Get("retain");
  client.Get("alloc 512");
  EXPECT_EQ(client.Ask("reset"), "ok");
  EXPECT_EQ(world.Used(0), 0U);
}

TEST_F(FakeDriverTest, EachGpuHasItsOwn) {
  FakeWorld world(Path(), {.gpus = {1000 * kMiB, 2000 * kMiB}});
  ClientProcess client({world.Environment()});
  client.Get("init");

  EXPECT_EQ(client.Get("count"), 2U);
  EXPECT_EQ(client.Get("total 1"), 2000 * kMiB);
  EXPECT_EQ(client.Ask("total 2"), "error 101");
  client.Get("retain 1");
  EXPECT_EQ(client.Get("info", 1), 1700 * kMiB);
  EXPECT_EQ(client.Get("info", 2), 2000 * kMiB);
  EXPECT_EQ(world.Used(0), 0U);
  EXPECT_EQ(client.Ask("uuid 1"), "ok " + FakeWorld::UuidText(1));
}

TEST_F(FakeDriverTest, NothingIsThereBeforeInit) {
  FakeWorld world(Path(), {.driver_version = 13000});
  ClientProcess client({world.Environment()});

  EXPECT_EQ(client.Ask("retain"), "error 3");
  EXPECT_EQ(client.Ask("count"), "error 3");
  EXPECT_EQ(client.Get("version"), 13000U);
  EXPECT_THAT(world.Processes(), IsEmpty());
  client.Get("init");
  EXPECT_EQ(client.Ask("alloc 512"), "error 201");
  EXPECT_THAT(world.Processes(), ElementsAre(client.pid()));
}

TEST_F(FakeDriverTest, AProcessWithoutAWorldHasNoGpu) {
  ClientProcess client({});

  EXPECT_EQ(client.Ask("init"), "error 100");
}

TEST_F(FakeDriverTest, ADeadProcessHasNothing) {
  FakeWorld world(Path());
  ClientProcess dead({world.Environment()}), alive({world.Environment()});
  for (ClientProcess* client : {&dead, &alive}) client->Get("start");
  dead.Get("alloc 512");

  EXPECT_EQ(world.Used(0), 2 * kContext + 512);
  dead.Kill();
  EXPECT_EQ(world.Used(0), kContext);
  EXPECT_EQ(world.UsedBy(dead.pid(), 0), 0U);
  EXPECT_EQ(alive.Get("info"), world.Free(0));
}

TEST_F(FakeDriverTest, TheMemoryOfTheDeadCanBeAllocated) {
  FakeWorld world(Path(), {.gpus = {400 * kMiB}});
  ClientProcess dead({world.Environment()}), next({world.Environment()});
  dead.Get("start");
  EXPECT_EQ(next.Ask("start"), "error 2");
  dead.Kill();

  EXPECT_THAT(next.Ask("start"), StartsWith("ok"));
}

TEST_F(FakeDriverTest, ProcessesThatAreKilledAtAnyTimeLeaveTheSumTrue) {
  FakeWorld world(Path());
  ClientProcess alive({world.Environment()});
  alive.Get("start");
  alive.Get("alloc 512");
  for (int round = 0; round < 20; ++round) {
    ClientProcess victim({world.Environment()});
    victim.Get("start");
    victim.Tell("random " + std::to_string(round) + " 100000000 65536");
    while (world.UsedBy(victim.pid(), 0) <= kContext) {  // It has begun.
    }
    victim.Kill();
    ASSERT_EQ(world.Used(0), kContext + 512) << "round " << round;
  }
}

TEST_F(FakeDriverTest, ExecFreesWhatTheProcessHad) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("start");
  client.Get("alloc 512");
  client.Tell("exec");

  EXPECT_EQ(client.Ask("pid"), "ok " + std::to_string(client.pid()));
  EXPECT_EQ(world.Used(0), 0U);
  client.Get("start");
  EXPECT_EQ(world.UsedBy(client.pid(), 0), kContext);
}

TEST_F(FakeDriverTest, AChildOfAProcessThatUsesTheDriverCannotUseIt) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("start");
  client.Get("fork");

  EXPECT_EQ(client.Ask("alloc 512"), "error 3");
  EXPECT_EQ(client.Ask("init"), "error 3");
  EXPECT_EQ(world.Used(0), kContext);
}

TEST_F(FakeDriverTest, AChildFromBeforeInitIsAProcessOfItsOwn) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("version");
  const auto child = static_cast<pid_t>(client.Get("fork"));
  client.Get("start");

  EXPECT_EQ(world.UsedBy(child, 0), kContext);
  EXPECT_EQ(world.UsedBy(client.pid(), 0), 0U);
  client.Ask("crash");
  EXPECT_EQ(WEXITSTATUS(client.Wait()), 128 + SIGKILL);
  EXPECT_EQ(world.Used(0), 0U);
}

TEST_F(FakeDriverTest, TheNthCallFailsAndDoesNothing) {
  FakeWorld world(Path());
  ClientProcess client({world.Environment()});
  client.Get("start");
  world.Fail("cuMemAlloc_v2", 2, 700);

  EXPECT_THAT(client.Ask("alloc 512"), StartsWith("ok"));
  EXPECT_EQ(client.Ask("alloc 512"), "error 700");
  EXPECT_THAT(client.Ask("alloc 512"), StartsWith("ok"));
  EXPECT_EQ(world.Used(0), kContext + 1024);
}

}  // namespace
}  // namespace grus::cuda::fake

// SPDX-License-Identifier: Apache-2.0
// Where the fake driver has managed memory: on the GPU as far as there is room, else in the host's memory, as UVM does.
#include <gmock/gmock.h>

#include <array>
#include <random>

#include "tests/nodeagent/cuda/fake/fake_test.h"

namespace grus::cuda::fake {
namespace {

using ::testing::StartsWith;

constexpr std::uint64_t kTotal = 1024 * kMiB, kContext = 12 * kMiB;

std::string Text(std::uint64_t number) { return std::to_string(number); }
std::string Mib(std::uint64_t number) { return Text(number * kMiB); }

// Two programs with a context each, and 1,000 MiB of room.
class FakeManagedTest : public FakeTest {
 protected:
  FakeManagedTest() {
    client.Get("start");
    other.Get("start");
  }
  void Expect(std::uint64_t plain_mib, std::uint64_t managed_mib, std::uint64_t host_mib) {
    EXPECT_EQ(world.Used(0), 2 * kContext + (plain_mib + managed_mib) * kMiB);
    EXPECT_EQ(world.Managed(0), managed_mib * kMiB);
    EXPECT_EQ(world.InHost(0), host_mib * kMiB);
  }

  FakeWorld world{Path(), {.gpus = {kTotal}, .context_bytes = kContext, .is_virtual = true}};
  ClientProcess client{{world.Environment()}}, other{{world.Environment()}};
};

TEST_F(FakeManagedTest, LiesOnTheGpuAsFarAsThereIsRoom) {
  client.Get("managed " + Mib(300));
  Expect(0, 300, 0);
  other.Get("managed " + Mib(2000));
  Expect(0, 1000, 1300);
  EXPECT_EQ(client.Ask("info"), "ok 0 " + Text(kTotal));
}

TEST_F(FakeManagedTest, MovesToTheHostForWhateverElseNeedsTheRoom) {
  client.Get("managed " + Mib(1000));
  other.Get("alloc " + Mib(100));
  Expect(100, 900, 100);
  other.Get("create " + Mib(100));
  other.Get("async " + Mib(96));
  Expect(296, 704, 296);
  EXPECT_EQ(other.Ask("alloc " + Mib(705)), "error 2") << "what is not managed never moves";
  client.Get("alloc " + Mib(704));
  Expect(1000, 0, 1000);
  EXPECT_EQ(other.Ask("alloc 1"), "error 2");
}

TEST_F(FakeManagedTest, ComesBackWhenAKernelOfItsProcessRuns) {
  client.Get("managed " + Mib(600));
  other.Get("managed " + Mib(600));
  const std::string plain = Text(other.Get("alloc " + Mib(500)));
  Expect(500, 500, 700);
  EXPECT_EQ(client.Ask("launch us1"), "ok");
  Expect(500, 500, 700);
  EXPECT_EQ(world.UsedBy(client.pid(), 0), kContext + 500 * kMiB);
  EXPECT_EQ(other.Ask("free " + plain), "ok");
  Expect(0, 500, 700);
  EXPECT_EQ(other.Ask("launch us1"), "ok");
  Expect(0, 1000, 200);
  EXPECT_EQ(world.UsedBy(other.pid(), 0), kContext + 600 * kMiB);
}

TEST_F(FakeManagedTest, WhatIsFreedOrWhoseProcessDiesLiesNowhere) {
  const std::string first = Text(client.Get("managed " + Mib(600)));
  other.Get("managed " + Mib(600));
  EXPECT_EQ(client.Ask("free " + first), "ok");
  Expect(0, 400, 200);
  client.Get("managed " + Mib(700));
  other.Kill();
  EXPECT_EQ(world.Used(0), kContext + 600 * kMiB);
  EXPECT_EQ(world.InHost(0), 100 * kMiB);
  EXPECT_EQ(client.Ask("reset"), "ok");
  EXPECT_EQ(world.Used(0), 0U);
  EXPECT_EQ(world.InHost(0), 0U);
}

TEST_F(FakeManagedTest, CannotBeOpenedByOthers) {
  EXPECT_EQ(client.Ask("share " + Text(client.Get("managed 512"))), "error 1");
}

TEST_F(FakeManagedTest, IsAsPlainMemoryIsWhereItCannotMove) {
  FakeWorld fixed(Path() + "2", {.gpus = {kTotal}, .can_move_managed = false});
  ClientProcess its({fixed.Environment()});
  its.Get("start");
  EXPECT_EQ(client.Ask("attribute 89"), "ok 1");
  EXPECT_EQ(its.Ask("attribute 89"), "ok 0");
  its.Get("managed " + Mib(500));
  EXPECT_EQ(fixed.Managed(0), 0U);
  EXPECT_EQ(its.Ask("managed " + Mib(500)), "error 2");
}

TEST_F(FakeManagedTest, TheGpuNeverHasMoreThanItsMemory) {
  std::mt19937 random(7);
  const std::array<ClientProcess*, 2> clients = {&client, &other};
  std::array<std::vector<std::string>, 2> live;
  for (int i = 0; i < 600; ++i) {
    const std::size_t who = random() % 2;
    const std::size_t what = random() % 5;
    if (what == 0) {
      EXPECT_EQ(clients[who]->Ask("launch us1"), "ok");
    } else if (what == 1 && !live[who].empty()) {
      EXPECT_EQ(clients[who]->Ask("free " + live[who].back()), "ok");
      live[who].pop_back();
    } else {
      const std::string answer =
          clients[who]->Ask((what == 2 ? "alloc " : "managed ") + Text(1 + random() % (300 * kMiB)));
      if (answer.starts_with("ok ")) live[who].push_back(answer.substr(3));
      else EXPECT_EQ(answer, "error 2");
    }
    ASSERT_LE(world.Used(0), kTotal) << i;
    ASSERT_LE(world.Managed(0) + 2 * kContext, world.Used(0)) << i;
  }
}

}  // namespace
}  // namespace grus::cuda::fake

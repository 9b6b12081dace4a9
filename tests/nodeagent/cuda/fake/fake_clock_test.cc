// SPDX-License-Identifier: Apache-2.0
// GPU time of the fake driver: in virtual time to the nanosecond, in real time only what no load can change.
#include <gmock/gmock.h>

#include "tests/nodeagent/cuda/fake/fake_test.h"

namespace grus::cuda::fake {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

std::string Text(std::uint64_t number) { return std::to_string(number); }

class FakeClockTest : public FakeTest {
 protected:
  FakeClockTest() { client.Get("start"); }

  std::string Ask(const std::string& command) { return client.Ask(command); }
  std::string New(const std::string& command) { return Text(client.Get(command)); }

  FakeWorld world{Path(), {.is_virtual = true}};
  ClientProcess client{{world.Environment()}};
};

TEST_F(FakeClockTest, ALaunchReturnsAtOnceAndIsDoneWhenItsTimeHasPassed) {
  EXPECT_EQ(Ask("launch us200"), "ok");
  EXPECT_EQ(Ask("query"), "error 600");
  world.Advance(199'999);
  EXPECT_EQ(Ask("query"), "error 600");
  EXPECT_EQ(world.BusyNs(client.pid(), 0), 199'999U);
  world.Advance(1);
  EXPECT_EQ(Ask("query"), "ok");
  world.Advance(kMs);
  EXPECT_EQ(world.BusyNs(client.pid(), 0), 200'000U);
  EXPECT_EQ(world.BusyNs(0), 200'000U);
}

TEST_F(FakeClockTest, EachWayToLaunchTakesTheKernelsTime) {
  std::uint64_t want = 0;
  for (const char* how : {"kernel", "ex", "cooperative", "multi", "old", "grid", "gridasync"}) {
    const std::string stream = New("stream");
    EXPECT_EQ(Ask("launch ms2 1 " + stream + " " + how), "ok") << how;
    EXPECT_EQ(Ask("syncall"), "ok");
    want += 2 * kMs;
    EXPECT_EQ(world.BusyNs(client.pid(), 0), want) << how;
  }
}

TEST_F(FakeClockTest, EachWayToLaunchIntoTheThreadsOwnStreamDoesToo) {
  ClientProcess own({world.Environment()}, {"--by=find", "--per-thread"});
  own.Get("start");
  std::uint64_t want = 0;
  for (const char* how : {"kernel", "ex", "cooperative"}) {
    EXPECT_EQ(own.Ask("launch ms2 1 0 " + std::string(how)), "ok") << how;
    EXPECT_EQ(own.Ask("sync"), "ok");
    want += 2 * kMs;
    EXPECT_EQ(world.BusyNs(own.pid(), 0), want) << how;
  }
}

TEST_F(FakeClockTest, TheThreadsOwnStreamIsNotTheLegacyOne) {
  ClientProcess own({world.Environment()}, {"--by=find", "--per-thread"});
  own.Get("start");
  EXPECT_EQ(own.Ask("capture 0"), "ok");  // What the legacy stream cannot.
  EXPECT_EQ(Ask("capture 0"), "error 900");
}

TEST_F(FakeClockTest, AWaitInVirtualTimeMovesTheClock) {
  const std::uint64_t begin = world.Now();
  Ask("launch ms20 3");

  EXPECT_EQ(Ask("sync"), "ok");
  EXPECT_EQ(world.Now() - begin, 60 * kMs);
}

TEST_F(FakeClockTest, AFullStreamHoldsTheNextLaunchUntilItsFirstIsDone) {
  const std::uint64_t begin = world.Now();
  EXPECT_EQ(Ask("launch ms1 1024"), "ok");
  EXPECT_EQ(world.Now(), begin);
  EXPECT_EQ(Ask("launch ms1"), "ok");
  EXPECT_EQ(world.Now() - begin, kMs);
}

TEST_F(FakeClockTest, StreamsOfAGpuTakeTurnsAndGpusDoNot) {
  const std::string one = New("stream"), two = New("stream");
  Ask("launch ms5 1 " + one);
  Ask("launch ms5 1 " + two);
  world.Advance(5 * kMs);

  EXPECT_EQ(Ask("query " + one), "ok");
  EXPECT_EQ(Ask("query " + two), "error 600");
  EXPECT_EQ(Ask("query"), "error 600");  // The legacy stream waits for both.
  world.Advance(5 * kMs);
  EXPECT_EQ(Ask("query " + two), "ok");
}

TEST_F(FakeClockTest, GpusAreBusyAtTheSameTime) {
  FakeWorld two(Path() + "2", {.gpus = {1024 * kMiB, 1024 * kMiB}, .is_virtual = true});
  ClientProcess other({two.Environment()});
  other.Get("start 0");
  other.Ask("launch ms5");
  other.Get("retain 1");
  other.Ask("launch ms5");
  two.Advance(5 * kMs);

  EXPECT_EQ(two.BusyNs(0), 5 * kMs);
  EXPECT_EQ(two.BusyNs(other.pid(), 1), 5 * kMs);
}

TEST_F(FakeClockTest, ProcessesShareAGpuInTheOrderInWhichTheyQueue) {
  ClientProcess other({world.Environment()});
  other.Get("start");
  Ask("launch ms10");
  other.Ask("launch ms30");
  Ask("launch ms10");
  world.Advance(25 * kMs);

  EXPECT_EQ(world.BusyNs(client.pid(), 0), 10 * kMs);
  EXPECT_EQ(world.BusyNs(other.pid(), 0), 15 * kMs);
  world.Advance(25 * kMs);
  EXPECT_EQ(world.BusyNs(client.pid(), 0), 20 * kMs);
  EXPECT_EQ(world.BusyNs(other.pid(), 0), 30 * kMs);
  EXPECT_EQ(world.BusyNs(0), 50 * kMs);
}

TEST_F(FakeClockTest, WhatTheDeadQueuedLastIsNotDone) {
  ClientProcess dead({world.Environment()});
  dead.Get("start");
  Ask("launch ms10");
  dead.Ask("launch s100");
  world.Advance(15 * kMs);
  dead.Kill();

  EXPECT_EQ(world.BusyNs(0), 15 * kMs);
  Ask("launch ms10");
  Ask("sync");
  EXPECT_EQ(world.BusyNs(client.pid(), 0), 20 * kMs);
  EXPECT_EQ(world.BusyNs(0), 25 * kMs);
}

TEST_F(FakeClockTest, EventsTellTheTimeBetweenThem) {
  const std::string begin = New("event"), end = New("event"), timeless = New("event 2");
  Ask("record " + begin);
  Ask("launch us200 5");
  Ask("record " + end);
  Ask("record " + timeless);

  EXPECT_EQ(Ask("done " + begin), "ok");
  EXPECT_EQ(Ask("done " + end), "error 600");
  EXPECT_EQ(Ask("elapsed " + begin + " " + end), "error 600");
  EXPECT_EQ(Ask("syncevent " + end), "ok");
  EXPECT_EQ(client.Get("elapsed " + begin + " " + end), 1000U);
  EXPECT_EQ(Ask("elapsed " + begin + " " + timeless), "error 400");
  EXPECT_EQ(Ask("elapsed " + begin + " " + New("event")), "error 400");
}

TEST_F(FakeClockTest, AGraphTakesTheTimeOfItsKernelsAndOfItsChildrens) {
  const std::string child = New("graph"), graph = New("graph");
  New("addkernel " + child + " us10 3");
  New("addkernel " + graph + " us100 2");
  New("addchild " + graph + " " + child);
  New("addchild " + graph + " " + child);
  EXPECT_EQ(Ask("nodes " + graph), "ok 0 0 4 4");
  const std::string exec = New("instantiate " + graph);
  EXPECT_EQ(Ask("endgraph " + graph), "ok");
  EXPECT_EQ(Ask("endgraph " + graph), "error 1");

  EXPECT_EQ(Ask("launchgraph " + exec + " 2"), "ok");
  EXPECT_EQ(Ask("sync"), "ok");
  EXPECT_EQ(world.BusyNs(client.pid(), 0), 2 * (200 + 60) * 1000U);
  EXPECT_EQ(Ask("endexec " + exec), "ok");
  EXPECT_EQ(Ask("launchgraph " + exec), "error 1");
}

TEST_F(FakeClockTest, WhatIsCapturedDoesNotRunUntilItsGraphIsLaunched) {
  const std::string stream = New("stream"), other = New("stream"), event = New("event");
  EXPECT_EQ(Ask("capture " + stream), "ok");
  EXPECT_EQ(client.Get("capturing " + stream), 1U);
  Ask("launch us100 2 " + stream);
  Ask("record " + event + " " + stream);
  Ask("waitevent " + other + " " + event);
  Ask("launch us100 1 " + other);
  EXPECT_EQ(Ask("sync " + stream), "error 900");
  EXPECT_EQ(Ask("done " + event), "error 907");
  const std::string graph = New("endcapture " + stream);
  world.Advance(kMs);

  EXPECT_EQ(client.Get("capturing " + other), 0U);
  EXPECT_EQ(world.BusyNs(0), 0U);
  EXPECT_EQ(Ask("nodes " + graph), "ok 0 0 0");
  Ask("launchgraph " + New("instantiate " + graph) + " 1 " + stream);
  EXPECT_EQ(Ask("sync " + stream), "ok");
  EXPECT_EQ(world.BusyNs(0), 300'000U);
}

TEST_F(FakeClockTest, WhatIsNotThereCannotBeUsed) {
  EXPECT_EQ(Ask("launch kernel"), "error 500");
  EXPECT_EQ(Ask("launch us200 1 0x1234560"), "error 400");
  EXPECT_EQ(Ask("launchgraph 0x1234560"), "error 1");
  EXPECT_EQ(Ask("done 0x1234560"), "error 400");
  EXPECT_EQ(Ask("endstream 0x1234560"), "error 400");
  const std::string stream = New("stream");
  EXPECT_EQ(Ask("endstream " + stream), "ok");
  EXPECT_EQ(Ask("query " + stream), "error 400");
}

TEST_F(FakeClockTest, InRealTimeAWaitLastsAtLeastAsLongAsTheWork) {
  FakeWorld real(Path() + "2");
  ClientProcess other({real.Environment()});
  other.Get("start");
  const std::uint64_t begin = real.Now();
  other.Ask("launch ms3 2");
  EXPECT_EQ(other.Ask("sync"), "ok");

  EXPECT_GE(real.Now() - begin, 6 * kMs);
  EXPECT_EQ(real.BusyNs(other.pid(), 0), 6 * kMs);
}

}  // namespace
}  // namespace grus::cuda::fake

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/simulation/simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "clientlib/base/wait.h"
#include "clientlib/runtime/work_queue.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;

TEST(Simulation, TimersRunInTheOrderOfTheirTimes) {
  Simulation simulation(1);
  std::string order;
  simulation.After(2h, [&] { order += 'c'; });
  simulation.After(1s, [&] { order += 'a'; });
  simulation.After(1s, [&] { order += 'b'; });
  simulation.RunFor(3h);
  EXPECT_EQ(order, "abc");
  EXPECT_EQ(simulation.Now(), Simulation::kStart + 3h);
}

TEST(Simulation, AWaitTakesVirtualTimeOnly) {
  Simulation simulation(1);
  std::optional<TimePoint> woke;
  Thread thread = simulation.Spawn([&](const std::stop_token& stop) {
    WaitFor(simulation, 100h, stop);
    woke = simulation.Now();
  });
  simulation.RunUntil(Simulation::kStart + 99h);
  EXPECT_FALSE(woke);
  simulation.RunFor(2h);
  EXPECT_EQ(woke, Simulation::kStart + 100h);
}

TEST(Simulation, AStopEndsAWaitAtOnce) {
  Simulation simulation(1);
  bool was_stopped = false;
  Thread thread =
      simulation.Spawn([&](const std::stop_token& stop) { was_stopped = !WaitFor(simulation, 100h, stop); });
  simulation.RunFor(1s);
  thread.RequestStop();
  simulation.RunFor(0s);
  EXPECT_TRUE(was_stopped);
  EXPECT_EQ(simulation.Now(), Simulation::kStart + 1s);
}

TEST(Simulation, AJoinInAFiberWaitsForTheOther) {
  Simulation simulation(1);
  std::string order;
  Thread outer = simulation.Spawn([&](const std::stop_token&) {
    Thread inner = simulation.Spawn([&](const std::stop_token&) {
      WaitFor(simulation, 1h, {});
      order += "inner ";
    });
    inner.Join();
    order += "outer";
  });
  outer.Join();  // From outside: the simulation runs on.
  EXPECT_EQ(order, "inner outer");
  EXPECT_EQ(simulation.Now(), Simulation::kStart + 1h);
}

// What three threads do to a work queue, as one line.
std::string History(std::uint64_t seed) {
  Simulation simulation(seed);
  WorkQueue queue(simulation);
  std::string history;
  std::vector<Thread> threads;
  for (const char* name : {"1", "2", "3"}) {
    threads.push_back(simulation.Spawn([&, name](const std::stop_token&) {
      while (const std::optional<WorkQueue::Item> item = queue.Get()) {
        history += item->key.name + name + " ";
        WaitFor(simulation, simulation.Between(1ms, 1s), {});
        queue.Done(item->key);
      }
    }));
  }
  for (const char* key : {"a", "b", "c", "d", "e", "f", "g"}) queue.AddAfter({"", key}, 10ms);
  simulation.RunFor(1h);
  queue.ShutDown();
  return history;
}

TEST(Simulation, TheSameSeedGivesTheSameRunAndAnotherOneAnother) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    EXPECT_EQ(History(seed), History(seed)) << "seed " << seed;
    EXPECT_EQ(History(seed).size(), 7U * 3) << "seed " << seed;
  }
  EXPECT_NE(History(1), History(2));
}

TEST(Simulation, ALoopThatNeverWaitsForTimeIsAnError) {
  Simulation simulation(1);
  CondVar spun;
  std::mutex mutex;
  bool may_end = false;
  Thread thread = simulation.Spawn([&](const std::stop_token&) {
    while (!may_end) {
      std::unique_lock lock(mutex);
      spun.NotifyAll();
      simulation.WaitUntil(lock, spun, simulation.Now() + 1ns);
      spun.NotifyAll();
    }
  });
  Thread other = simulation.Spawn([&](const std::stop_token&) {
    while (!may_end) {
      std::unique_lock lock(mutex);
      simulation.WaitUntil(lock, spun, TimePoint::max());
      spun.NotifyAll();
    }
  });
  EXPECT_THROW(simulation.RunFor(1s), std::runtime_error);
  may_end = true;
}

TEST(Simulation, RunUntilEndsAsSoonAsTheConditionHolds) {
  Simulation simulation(1);
  int ticks = 0;
  simulation.After(1s, [&] { ++ticks; });
  simulation.After(2s, [&] { ++ticks; });
  EXPECT_TRUE(simulation.RunUntil([&] { return ticks == 1; }, Simulation::kStart + 1h));
  EXPECT_EQ(simulation.Now(), Simulation::kStart + 1s);
  EXPECT_FALSE(simulation.RunUntil([&] { return ticks == 3; }, Simulation::kStart + 1h));
  EXPECT_EQ(simulation.Now(), Simulation::kStart + 1h);
}

TEST(Simulation, AFrozenProcessStandsStillWithAllItsThreads) {
  Simulation simulation(1);
  int frozen_ticks = 0, other_ticks = 0;
  const auto tick = [&](int& ticks) {
    return [&](const std::stop_token& stop) {
      while (WaitFor(simulation, 1s, stop)) ++ticks;
    };
  };
  Thread process = simulation.SpawnProcess(7, [&](const std::stop_token& stop) {
    Thread child = simulation.Spawn(tick(frozen_ticks));
    while (WaitFor(simulation, 1s, stop)) ++frozen_ticks;
  });
  Thread other = simulation.Spawn(tick(other_ticks));
  simulation.RunFor(10s);
  EXPECT_EQ(frozen_ticks, 20);
  simulation.Freeze(7, 1h);
  simulation.RunFor(50min);
  EXPECT_EQ(frozen_ticks, 20);
  EXPECT_EQ(other_ticks, 10 + 50 * 60);
  simulation.RunFor(10min + 500ms);
  EXPECT_EQ(frozen_ticks, 22);
}

TEST(Simulation, TheWallClockCanJumpAlone) {
  Simulation simulation(1);
  simulation.ShiftWall(-5min);
  EXPECT_EQ(simulation.WallNow(), Simulation::kWallStart - 5min);
  EXPECT_EQ(simulation.Now(), Simulation::kStart);
}

}  // namespace
}  // namespace kube::testing

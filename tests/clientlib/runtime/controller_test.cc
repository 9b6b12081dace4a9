// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <mutex>

#include "clientlib/base/wait.h"
#include "clientlib/testing/fake_clock.h"
#include "tests/kit/event.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const ObjectKey kA{"ns", "a"}, kB{"ns", "b"};

// Does what the test says, and remembers how often it was asked.
class FakeReconciler final : public Reconciler {
 public:
  using Pass = std::function<Result<Action>(const ObjectKey&, std::stop_token)>;
  explicit FakeReconciler(Pass pass) : pass_(std::move(pass)) {}

  Result<Action> Reconcile(const ObjectKey& key, std::stop_token stop) override {
    {
      std::lock_guard lock(mutex_);
      keys_.push_back(key);
    }
    called_.notify_all();
    return pass_(key, std::move(stop));
  }
  // True once it was called `count` times; false after 20 s of real time.
  bool Await(std::size_t count) {
    std::unique_lock lock(mutex_);
    return called_.wait_for(lock, 20s, [&] { return keys_.size() >= count; });
  }
  std::vector<ObjectKey> keys() {
    std::lock_guard lock(mutex_);
    return keys_;
  }

 private:
  const Pass pass_;
  std::mutex mutex_;  // Guards keys_.
  std::condition_variable called_;
  std::vector<ObjectKey> keys_;
};

class ControllerTest : public ::testing::Test {
 protected:
  // One reconcile thread; failures wait 1 s, 2 s, 4 s.
  void Start(FakeReconciler::Pass pass, int threads = 1) {
    reconciler_ = std::make_unique<FakeReconciler>(std::move(pass));
    controller_ = std::make_unique<Controller>(
        *reconciler_,
        ControllerOptions{
            .name = "test", .threads = threads, .deadline = 2min, .rate_limits = {{1s, 1000s, 2.0, 0.0}, 1e9, 1e9}},
        clock_, log_, registry_);
    controller_->Start();
  }
  // Waits until the one reconcile thread has nothing to do; the thread that watches deadlines waits as well.
  [[nodiscard]] bool AwaitIdle() const { return clock_.AwaitWaiters(2); }
  // Exactly `count` passes were made, and nothing is about to begin another one.
  void ExpectPasses(std::size_t count) {
    ASSERT_TRUE(reconciler_->Await(count));
    ASSERT_TRUE(AwaitIdle());
    EXPECT_EQ(reconciler_->keys().size(), count);
  }
  std::string Metric(const std::string& name_and_labels) const {
    const std::string text = registry_.Text();
    const std::size_t at = text.find("\n" + name_and_labels + " ");
    if (at == std::string::npos) return "(none)";
    const std::size_t begin = at + name_and_labels.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  std::string Outcomes(const std::string& result) const {
    return Metric("controller_runtime_reconcile_total{controller=\"test\",result=\"" + result + "\"}");
  }
  std::string Count(const std::string& name) const { return Metric(name + "{controller=\"test\"}"); }

  FakeClock clock_;
  Log log_{LogLevel::kOff};
  Registry registry_;
  std::unique_ptr<FakeReconciler> reconciler_;
  std::unique_ptr<Controller> controller_;
};

TEST_F(ControllerTest, ReconcilesTheKeysOfItsQueue) {
  Start([](auto&, auto) { return Action::AwaitChange(); });
  controller_->queue().Add(kA);
  controller_->queue().Add(kB);
  ExpectPasses(2);
  EXPECT_EQ(reconciler_->keys(), (std::vector{kA, kB}));
  EXPECT_EQ(Outcomes("success"), "2");
  EXPECT_EQ(Metric("workqueue_adds_total{name=\"test\"}"), "2");
  EXPECT_EQ(Metric("workqueue_depth{name=\"test\"}"), "0");
  EXPECT_THAT(registry_.Text(), HasSubstr("# TYPE workqueue_adds_total counter"));
}

TEST_F(ControllerTest, KeysAddedBeforeTheStartAreReconciledAfterIt) {
  FakeReconciler reconciler([](auto&, auto) { return Action::AwaitChange(); });
  Controller controller(reconciler, {.name = "other"}, clock_, log_, registry_);
  controller.queue().Add(kA);
  EXPECT_TRUE(reconciler.keys().empty());
  controller.Start();
  EXPECT_TRUE(reconciler.Await(1));
}

TEST_F(ControllerTest, Q4AnErrorIsTriedAgainWithBackoff) {
  Start([](auto&, auto) { return Error(ErrorCode::kUnavailable, "no server"); });
  controller_->queue().Add(kA);
  ExpectPasses(1);
  clock_.Advance(999ms);
  ExpectPasses(1);
  clock_.Advance(1ms);
  ExpectPasses(2);
  clock_.Advance(1999ms);
  ExpectPasses(2);
  clock_.Advance(1ms);
  ExpectPasses(3);
  EXPECT_EQ(Outcomes("error"), "3");
  EXPECT_EQ(Count("controller_runtime_reconcile_errors_total"), "3");
  EXPECT_EQ(Metric("workqueue_retries_total{name=\"test\"}"), "3");
}

TEST_F(ControllerTest, Q4ATerminalErrorIsCountedAndNotTriedAgain) {
  Start([](auto&, auto) -> Result<Action> { return Error(ErrorCode::kInvalid, "bad spec").as_terminal(); });
  controller_->queue().Add(kA);
  ExpectPasses(1);
  EXPECT_EQ(controller_->queue().counts().delayed, 0u);
  EXPECT_EQ(Count("controller_runtime_terminal_reconcile_errors_total"), "1");
  EXPECT_EQ(Outcomes("error"), "1");

  controller_->queue().Add(kA);  // A change brings it back.
  ExpectPasses(2);
}

TEST_F(ControllerTest, Q4RequeueAfterComesBackAtItsTime) {
  Start([](auto&, auto) { return Action::After(10s); });
  controller_->queue().Add(kA);
  ExpectPasses(1);
  clock_.Advance(9999ms);
  ExpectPasses(1);
  clock_.Advance(1ms);
  ExpectPasses(2);
  EXPECT_EQ(Outcomes("requeue_after"), "2");
}

TEST_F(ControllerTest, Q4SuccessComesBackOnlyWithAChange) {
  Start([](auto&, auto) { return Action::AwaitChange(); });
  controller_->queue().Add(kA);
  ExpectPasses(1);
  EXPECT_EQ(controller_->queue().counts().delayed, 0u);
}

TEST_F(ControllerTest, Q3SuccessAndRequeueAfterForgetTheFailures) {
  for (const Action& action : {Action::AwaitChange(), Action::After(1h)}) {
    int passes = 0;
    Start([&](auto&, auto) -> Result<Action> {
      if (++passes == 3) return action;
      return Error(ErrorCode::kUnavailable, "no server");
    });
    controller_->queue().Add(kA);
    ExpectPasses(1);
    clock_.Advance(1s);
    ExpectPasses(2);
    clock_.Advance(2s);
    ExpectPasses(3);
    controller_->queue().Add(kA);
    ExpectPasses(4);
    clock_.Advance(1s);  // Not 4 s.
    ExpectPasses(5);
    controller_.reset();
  }
}

TEST_F(ControllerTest, H2ARetryAfterLongerThanTheBackoffIsWaitedFor) {
  Start([](auto&, auto) -> Result<Action> {
    return Error(ErrorCode::kTooManyRequests, "slow down").with_retry_after(5s);
  });
  controller_->queue().Add(kA);
  ExpectPasses(1);
  clock_.Advance(4999ms);
  ExpectPasses(1);
  clock_.Advance(1ms);
  ExpectPasses(2);
}

TEST_F(ControllerTest, Q5AnExceptionIsAnErrorAndTheProcessLives) {
  Start([](const ObjectKey& key, auto) -> Result<Action> {
    if (key == kA) throw std::runtime_error("bug");
    throw 7;
  });
  controller_->queue().Add(kA);
  controller_->queue().Add(kB);
  ExpectPasses(2);
  EXPECT_EQ(Count("controller_runtime_reconcile_panics_total"), "2");
  EXPECT_EQ(Outcomes("error"), "2");
  clock_.Advance(1s);
  ExpectPasses(4);
}

TEST_F(ControllerTest, Q5APassThatOutlivesItsDeadlineIsToldToStop) {
  Event told;
  Start([&](auto&, std::stop_token stop) -> Result<Action> {
    if (WaitFor(clock_, 1h, stop)) return Action::AwaitChange();
    told.Set();
    return Error(ErrorCode::kTimeout, "stopped");
  });
  controller_->queue().Add(kA);
  ASSERT_TRUE(reconciler_->Await(1));
  ASSERT_TRUE(AwaitIdle());
  clock_.Advance(2min - 1s);
  ASSERT_TRUE(AwaitIdle());
  EXPECT_EQ(Outcomes("error"), "0");
  clock_.Advance(1s);
  ASSERT_TRUE(told.Wait());
  ASSERT_TRUE(AwaitIdle());
  EXPECT_EQ(Outcomes("error"), "1");
  EXPECT_EQ(Count("controller_runtime_reconcile_timeouts_total"), "1");
}

TEST_F(ControllerTest, Q5EachPassHasADeadlineOfItsOwn) {
  Start([this](auto&, std::stop_token stop) -> Result<Action> {
    if (WaitFor(clock_, 90s, stop)) return Action::AwaitChange();
    return Error(ErrorCode::kTimeout, "stopped");
  });
  for (std::size_t pass = 1; pass <= 3; ++pass) {
    controller_->queue().Add(kA);
    ASSERT_TRUE(reconciler_->Await(pass));
    ASSERT_TRUE(AwaitIdle());
    clock_.Advance(90s);
    ASSERT_TRUE(AwaitIdle());
  }
  EXPECT_EQ(Outcomes("success"), "3");
  EXPECT_EQ(Count("controller_runtime_reconcile_timeouts_total"), "0");
}

TEST_F(ControllerTest, Q6ARetryDoesNotOvertakeLiveKeys) {
  Start([](const ObjectKey& key, auto) -> Result<Action> {
    if (key == kA) return Error(ErrorCode::kUnavailable, "no server");
    return Action::After(1s);
  });
  controller_->queue().Add(kA, Priority::kLow);
  ExpectPasses(1);
  controller_->queue().Add(kB);
  ExpectPasses(2);
  clock_.Advance(1s);  // Both come due.
  ExpectPasses(4);
  EXPECT_EQ(reconciler_->keys(), (std::vector{kA, kB, kB, kA}));
}

TEST_F(ControllerTest, Q1ManyThreadsReconcileManyKeysAtOnce) {
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0;
  Start(
      [&](auto&, auto) {
        std::unique_lock lock(mutex);
        ++inside;
        changed.notify_all();
        changed.wait_for(lock, 20s, [&] { return inside == 4; });
        return Action::AwaitChange();
      },
      4);
  for (int i = 0; i < 4; ++i) controller_->queue().Add({"ns", std::to_string(i)});
  std::unique_lock lock(mutex);
  EXPECT_TRUE(changed.wait_for(lock, 20s, [&] { return inside == 4; }));
  lock.unlock();
  controller_.reset();  // Its threads use what is above.
}

TEST_F(ControllerTest, Q7StopWaitsForThePassesThatRun) {
  std::promise<void> may_end;
  std::atomic<bool> was_told = false;
  Start([&](auto&, std::stop_token stop) {
    may_end.get_future().wait();
    was_told = stop.stop_requested();
    return Action::AwaitChange();
  });
  controller_->queue().Add(kA);
  ASSERT_TRUE(reconciler_->Await(1));
  controller_->queue().Add(kB);
  auto stopped = std::async(std::launch::async, [&] { return controller_->Stop(clock_.Now() + 30s); });
  ASSERT_TRUE(clock_.AwaitWaiters(2));

  may_end.set_value();

  EXPECT_TRUE(stopped.get());
  EXPECT_FALSE(was_told);
  EXPECT_EQ(reconciler_->keys().size(), 1u);  // No new pass began.
}

TEST_F(ControllerTest, Q7APassThatDoesNotEndInTimeIsToldToStop) {
  Start([this](auto&, std::stop_token stop) -> Result<Action> {
    WaitFor(clock_, 1h, stop);
    return Action::AwaitChange();
  });
  controller_->queue().Add(kA);
  ASSERT_TRUE(reconciler_->Await(1));
  auto stopped = std::async(std::launch::async, [&] { return controller_->Stop(FakeClock::kStart + 30s); });
  ASSERT_TRUE(clock_.AwaitWaiters(3));
  clock_.Advance(30s);
  EXPECT_FALSE(stopped.get());
  EXPECT_EQ(Count("controller_runtime_reconcile_timeouts_total"), "0");  // Not its own deadline.
}

// However close the stop comes to the beginning of a pass, the pass is told.
TEST_F(ControllerTest, E4AStopAtOnceReachesAPassThatJustBegins) {
  for (int round = 0; round < 100; ++round) {
    Start([this](auto&, std::stop_token stop) -> Result<Action> {
      WaitFor(clock_, 1h, stop);
      return Action::AwaitChange();
    });
    controller_->queue().Add(kA);
    while (controller_->queue().counts().depth > 0) std::this_thread::yield();
    auto stopped = std::async(std::launch::async, [&] { return controller_->Stop(clock_.Now()); });
    const bool is_in_time = stopped.wait_for(20s) == std::future_status::ready;
    if (!is_in_time) clock_.Advance(1h);
    ASSERT_TRUE(is_in_time) << "round " << round;
    stopped.get();
    controller_.reset();
  }
}

TEST_F(ControllerTest, ItEndsWithoutHavingStarted) {
  FakeReconciler reconciler([](auto&, auto) { return Action::AwaitChange(); });
  Controller controller(reconciler, {.name = "idle"}, clock_, log_, registry_);
  EXPECT_TRUE(controller.Stop(clock_.Now()));
}

}  // namespace
}  // namespace kube::testing

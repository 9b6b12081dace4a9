// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/simulation/simulation.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include "clientlib/testing/simulation/fiber.h"

namespace kube::testing {
namespace {

// Steps without progress of time: more means an endless loop.
constexpr int kMostStepsAtOnce = 200'000;

}  // namespace

struct Simulation::Impl {
  // A thread of the code under simulation. Shared by its handle and the run loop.
  struct Task {
    Task(int its_process, std::function<void(std::stop_token)> body)
        : process(its_process), fiber([this, run = std::move(body)] { run(stop.get_token()); }) {}
    const int process;
    std::stop_source stop;
    Fiber fiber;
    // What the task waits for; null: it can continue. Written by the task itself.
    const CondVar* waits_on = nullptr;
    std::uint64_t seen = 0;  // The notification count when the wait began.
    TimePoint until{};
    CondVar ended;
  };
  class Handle;

  explicit Impl(std::uint64_t seed) : random(seed) {}

  bool CanGoOn(const Task& task) const {
    if (!frozen.empty() && FrozenUntil(task) > now) return false;
    return task.waits_on == nullptr || task.until <= now || task.waits_on->notifications() != task.seen;
  }
  TimePoint FrozenUntil(const Task& task) const {
    const auto it = frozen.find(task.process);
    return it == frozen.end() ? TimePoint::min() : it->second;
  }
  Thread Start(int process, std::function<void(std::stop_token)> body);
  bool Step();  // Runs one random task; false if none can continue.
  void RunTimers();
  bool Run(const std::function<bool()>* done, TimePoint until);
  TimePoint NextTime() const;
  void Wait(CondVar& condition, TimePoint until);

  std::mt19937_64 random;
  TimePoint now = kStart;
  Duration wall_shift{};
  std::vector<std::shared_ptr<Task>> tasks;  // In the order of their start; ended ones are removed.
  Task* current = nullptr;
  std::multimap<TimePoint, std::function<void()>> timers;
  std::map<int, TimePoint> frozen;    // Processes.
  std::vector<std::size_t> runnable;  // Kept for its capacity.
};

class Simulation::Impl::Handle final : public Thread::Impl {
 public:
  Handle(Simulation::Impl& simulation, std::shared_ptr<Task> task) : simulation_(simulation), task_(std::move(task)) {}
  void RequestStop() override { task_->stop.request_stop(); }
  void Join() override {
    if (simulation_.current == nullptr) {  // Called from outside: run the simulation until the fiber has ended.
      const std::function<bool()> done = [this] { return task_->fiber.has_ended(); };
      if (!simulation_.Run(&done, TimePoint::max())) throw std::runtime_error("simulation: a fiber never ends");
      return;
    }
    while (!task_->fiber.has_ended()) simulation_.Wait(task_->ended, TimePoint::max());
  }

 private:
  Simulation::Impl& simulation_;
  const std::shared_ptr<Task> task_;
};

Simulation::Simulation(std::uint64_t seed) : impl_(std::make_unique<Impl>(seed)) {}

Simulation::~Simulation() { assert(impl_->tasks.empty() && "a simulation ends before its fibers"); }

bool Simulation::Impl::Step() {
  runnable.clear();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (CanGoOn(*tasks[i])) runnable.push_back(i);
  }
  if (runnable.empty()) return false;
  const std::size_t chosen = runnable[runnable.size() == 1 ? 0 : random() % runnable.size()];
  const std::shared_ptr<Task> task = tasks[chosen];
  task->waits_on = nullptr;
  current = task.get();
  task->fiber.Resume();
  current = nullptr;
  if (task->fiber.has_ended()) {
    std::erase(tasks, task);
    task->ended.NotifyAll();
  }
  return true;
}

void Simulation::Impl::RunTimers() {
  while (!timers.empty() && timers.begin()->first <= now) {
    const std::function<void()> action = std::move(timers.extract(timers.begin()).mapped());
    action();
  }
}

TimePoint Simulation::Impl::NextTime() const {
  TimePoint next = timers.empty() ? TimePoint::max() : timers.begin()->first;
  for (const auto& task : tasks) {
    const TimePoint frozen_until = FrozenUntil(*task);
    // A frozen task may already be due.
    next = std::min(next, frozen_until > now ? frozen_until : task->until);
  }
  return next;
}

bool Simulation::Impl::Run(const std::function<bool()>* done, TimePoint until) {
  assert(current == nullptr && "a simulation is run from one of its fibers");
  int steps = 0;
  for (;;) {
    RunTimers();
    if (done != nullptr && (*done)()) return true;
    if (Step()) {
      if (++steps > kMostStepsAtOnce) throw std::runtime_error("simulation: time does not move on");
      continue;
    }
    const TimePoint next = NextTime();
    if (next > until || next == TimePoint::max()) {
      if (until != TimePoint::max()) now = std::max(now, until);
      return false;
    }
    now = next;
    steps = 0;
  }
}

void Simulation::Impl::Wait(CondVar& condition, TimePoint until) {
  Task& task = *current;
  task.waits_on = &condition;
  task.seen = condition.notifications();
  task.until = until;
  task.fiber.Suspend();
}

void Simulation::After(Duration delay, std::function<void()> action) {
  impl_->timers.emplace(impl_->now + std::max(delay, Duration::zero()), std::move(action));
}

void Simulation::RunUntil(TimePoint until) { impl_->Run(nullptr, until); }

bool Simulation::RunUntil(const std::function<bool()>& done, TimePoint until) { return impl_->Run(&done, until); }

void Simulation::ShiftWall(Duration by) { impl_->wall_shift += by; }

std::mt19937_64& Simulation::random() { return impl_->random; }

Duration Simulation::Between(Duration least, Duration most) {
  assert(least <= most);
  const auto span = static_cast<std::uint64_t>((most - least).count()) + 1;
  return least + Duration(static_cast<Duration::rep>(impl_->random() % span));
}

bool Simulation::OneIn(int n) { return impl_->random() % static_cast<std::uint64_t>(n) == 0; }

TimePoint Simulation::Now() const { return impl_->now; }

WallTime Simulation::WallNow() const {
  return kWallStart + std::chrono::duration_cast<WallTime::duration>(impl_->now - kStart + impl_->wall_shift);
}

void Simulation::WaitUntil(std::unique_lock<std::mutex>& lock, CondVar& condition, TimePoint until) const {
  assert(impl_->current != nullptr && "only a fiber can wait");
  if (until <= impl_->now) return;
  lock.unlock();
  impl_->Wait(condition, until);
  lock.lock();
}

Thread Simulation::Impl::Start(int process, std::function<void(std::stop_token)> body) {
  auto task = std::make_shared<Task>(process, std::move(body));
  tasks.push_back(task);
  return Thread(std::make_unique<Handle>(*this, std::move(task)));
}

Thread Simulation::Spawn(std::function<void(std::stop_token)> body) const {
  return impl_->Start(impl_->current == nullptr ? 0 : impl_->current->process, std::move(body));
}

Thread Simulation::SpawnProcess(int process, std::function<void(std::stop_token)> body) {
  return impl_->Start(process, std::move(body));
}

void Simulation::Freeze(int process, Duration time) {
  impl_->frozen[process] = std::max(impl_->frozen[process], impl_->now + time);
}

std::uint64_t Simulation::RandomSeed() const { return impl_->random(); }

}  // namespace kube::testing

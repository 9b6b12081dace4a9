// SPDX-License-Identifier: Apache-2.0
// Ten minutes of virtual time on a node with 8 GPUs and 200 processes that come and go, whose PIDs are used again:
// every sample must be on the right pod, also when processes change while the agent looks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <set>

#include "nodeagent/gpu_probe.h"
#include "nodeagent/nvml.h"
#include "tests/kit/manual_clock.h"
#include "tests/nodeagent/fake_driver.h"
#include "tests/nodeagent/fake_proc.h"

namespace grus {
namespace {

using Ticks = ProcessOwners::Ticks;

constexpr int kGpus = 8, kProcesses = 200, kPods = 60, kSeconds = 600;
constexpr Ticks kTicksPerSecond = 100;

std::string UidOf(int pod) {
  const std::string digits = std::to_string(1000 + pod);
  return "00000000-0000-4000-8000-00000000" + digits;
}

class NamesOfPods final : public PodNames {
 public:
  std::optional<PodName> Find(const PodOfProcess& pod) const override {
    return PodName{"team", "pod-" + pod.pod_uid, "main"};
  }
};

struct Process {
  std::uint64_t id = 0;  // Never used again; also the memory that it uses.
  int pid = 0, pod = 0;
  std::set<int> gpus = {};
  Ticks start = 0;
};

// The node as it is: its processes, what its driver and its /proc say.
class BusyNode {
 public:
  explicit BusyNode(std::uint64_t seed) : random_(seed), processes_(kProcesses) {
    for (Process& process : processes_) Replace(process, 1);
  }

  // Ends a process and begins another, half of the times with the same PID.
  void Replace(Process& process, Ticks now) {
    const int ended = process.pid;
    if (ended != 0) proc_.End(ended);
    taken_.erase(ended);
    process = {.id = ++last_id_, .pid = ended, .pod = Random(0, kPods - 1), .start = now};
    if (ended == 0 || Random(0, 1) == 0) {
      do process.pid = Random(1000, 1000 + 2 * kProcesses);
      while (taken_.contains(process.pid));
    }
    taken_.insert(process.pid);
    process.gpus = {Random(0, kGpus - 1)};
    if (Random(0, 9) == 0) process.gpus.insert(Random(0, kGpus - 1));
    proc_.PutInPod(process.pid, now, UidOf(process.pod), testing::ContainerId('a'));
  }
  void ReplaceSome(int count, Ticks now) {
    for (int i = 0; i < count; ++i) Replace(processes_[static_cast<std::size_t>(Random(0, kProcesses - 1))], now);
  }

  std::string Script(int second) const {
    std::string script = "now us=" + std::to_string(second * 1'000'000) + "\n";
    for (int gpu = 0; gpu < kGpus; ++gpu) script += "gpu uuid=GPU-" + std::to_string(gpu) + " used=1 total=2\n";
    for (const Process& process : processes_) {
      for (const int gpu : process.gpus) {
        script += "process gpu=" + std::to_string(gpu) + " pid=" + std::to_string(process.pid) +
                  " memory=" + std::to_string(process.id) + " sm=" + std::to_string(process.id % 100 + 1) + "\n";
      }
    }
    return script;
  }

  int Random(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  const std::vector<Process>& processes() const { return processes_; }
  std::string proc() const { return proc_.path(); }

 private:
  std::mt19937_64 random_;
  testing::FakeProc proc_;
  std::vector<Process> processes_;
  std::set<int> taken_;
  std::uint64_t last_id_ = 0;
};

// The driver, with a node that does not stand still while it is asked.
class RacingLibrary final : public GpuLibrary {
 public:
  std::function<void()> before_lists, after_lists;
  explicit RacingLibrary(const std::string& file) : library_(file) {}

  kube::Result<std::vector<Gpu>> Open() override { return library_.Open(); }
  std::size_t left_out() const override { return library_.left_out(); }
  kube::Result<GpuSample> Sample(std::size_t gpu) override { return library_.Sample(gpu); }
  kube::Result<PcieRates> Pcie(std::size_t gpu) override { return library_.Pcie(gpu); }
  std::vector<Xid> NewXids() override { return library_.NewXids(); }
  kube::Result<std::vector<GpuProcess>> Processes(std::size_t gpu) override {
    if (gpu == 0) before_lists();
    auto processes = library_.Processes(gpu);
    if (gpu + 1 == kGpus) after_lists();
    return processes;
  }

 private:
  NvmlLibrary library_;
};

struct Tally {
  int mapped = 0, unmapped = 0, reused = 0, shares = 0;
};

// Whether each row of the look is right, and none is missing. `listed`: what ran when the driver was asked, at `asked`.
void Judge(const NodeSample& look, const std::vector<Process>& listed, const BusyNode& node, Ticks asked,
           std::map<int, std::uint64_t>& mapped_before, Tally& tally) {
  std::set<std::uint64_t> running;
  for (const Process& process : node.processes()) running.insert(process.id);
  std::map<int, std::uint64_t> mapped_now;
  std::array<std::size_t, kGpus> mapped = {}, unmapped = {};
  std::map<std::pair<int, int>, const Process*> expected;  // By GPU and PID.
  for (const Process& process : listed) {
    const bool is_certain = running.contains(process.id) && process.start < asked;
    for (const int gpu : process.gpus) {
      ++(is_certain ? mapped : unmapped)[static_cast<std::size_t>(gpu)];
      if (is_certain) expected[{gpu, process.pid}] = &process;
    }
  }
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    const GpuState& state = look.gpus[static_cast<std::size_t>(gpu)];
    ASSERT_EQ(state.processes.size(), mapped[static_cast<std::size_t>(gpu)]);
    ASSERT_EQ(state.unmapped, unmapped[static_cast<std::size_t>(gpu)]);
    tally.unmapped += static_cast<int>(state.unmapped);
    for (const ProcessSample& row : state.processes) {
      const auto right = expected.find({gpu, row.usage.pid});
      ASSERT_NE(right, expected.end()) << row.usage.pid;
      const Process& process = *right->second;
      ASSERT_EQ(row.owner->pod.pod_uid, UidOf(process.pod));
      ASSERT_EQ(row.owner->name.pod, "pod-" + UidOf(process.pod));
      ASSERT_EQ(row.usage.memory_bytes, process.id);
      const auto before = mapped_before.find(process.pid);
      const bool was_there = before != mapped_before.end() && before->second == process.id;
      ASSERT_EQ(row.usage.sm_percent.has_value(), was_there) << "a share is told of a process that was there before";
      if (was_there) {
        ASSERT_EQ(*row.usage.sm_percent, process.id % 100 + 1);
      }
      ++tally.mapped;
      tally.reused += before != mapped_before.end() && !was_there;
      tally.shares += was_there;
      mapped_now[process.pid] = process.id;
    }
  }
  mapped_before = mapped_now;
}

TEST(Mapping, EverySampleIsOnTheRightPodWhilePidsAreUsedAgain) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  BusyNode node(seed);
  testing::FakeDriver driver;
  RacingLibrary library(driver.path());
  const NamesOfPods names;
  ProcessOwners owners(node.proc(), names);
  kube::testing::ManualClock clock;
  const kube::Log log(kube::LogLevel::kOff);
  Ticks now = 1000;
  GpuFaults faults({}, log);
  GpuProbe probe(library, owners, faults, clock, log, [&] { return now; });
  Tally tally;
  std::map<int, std::uint64_t> mapped_before;

  for (int second = 1; second <= kSeconds; ++second) {
    std::vector<Process> listed;
    library.before_lists = [&] {  // The time is noted; these begin before the driver is asked.
      node.ReplaceSome(node.Random(0, 1), now);
      driver.Play(node.Script(second));
      listed = node.processes();
    };
    library.after_lists = [&] { node.ReplaceSome(node.Random(0, 3), now + 1); };
    clock.Advance(std::chrono::seconds(1));
    node.ReplaceSome(node.Random(0, 10), now + kTicksPerSecond / 2);
    now += kTicksPerSecond;
    driver.Play(node.Script(second));

    probe.LookOnce();

    Judge(*probe.newest(), listed, node, now, mapped_before, tally);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tally.mapped, kSeconds * kProcesses * 9 / 10);
  EXPECT_GT(tally.unmapped, kSeconds / 2);
  EXPECT_GT(tally.reused, kSeconds / 2);
  EXPECT_GT(tally.shares, tally.mapped * 8 / 10);
  RecordProperty("samples", tally.mapped);
  RecordProperty("unmapped", tally.unmapped);
  RecordProperty("pids_used_again", tally.reused);
}

}  // namespace
}  // namespace grus

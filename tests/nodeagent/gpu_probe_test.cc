// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/gpu_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodeagent/nvml.h"
#include "tests/kit/manual_clock.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/fake_driver.h"
#include "tests/nodeagent/fake_proc.h"

namespace grus {
namespace {

using std::chrono::seconds;
using testing::ContainerId;
using testing::FakeDriver;
using testing::FakeProc;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class NoNames final : public PodNames {
 public:
  std::optional<PodName> Find(const PodOfProcess&) const override { return std::nullopt; }
};

std::string Gpu(const std::string& uuid, const std::string& more = "") {
  return "gpu uuid=" + uuid + " used=1024 total=4096 util=50 pcierx=1 pcietx=1 " + more + "\n";
}

class GpuProbeTest : public ::testing::Test {
 protected:
  GpuProbeTest() { folder_.Write("proc/sys/kernel/random/boot_id", "boot\n"); }
  // The next second, in which the driver says this. Returns what the probe logs.
  std::string Look(const std::string& script, GpuProbe& probe) {
    clock_.Advance(seconds(1));
    ticks_ += 100;
    driver_.Play(script);
    ::testing::internal::CaptureStderr();
    probe.LookOnce();
    return ::testing::internal::GetCapturedStderr();
  }
  std::string Look(const std::string& script) { return Look(script, probe_); }
  // Many seconds; all that is logged in them.
  std::string Look(const std::string& script, int times) {
    std::string logged;
    for (int i = 0; i < times; ++i) logged += Look(script);
    return logged;
  }
  const std::vector<GpuState>& Gpus() const { return probe_.newest()->gpus; }
  static int CountIn(const std::string& text, const std::string& part) {
    int count = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
    return count;
  }

  FakeDriver driver_;
  FakeProc proc_;
  NoNames names_;
  kube::testing::ManualClock clock_;
  const kube::Log log_;
  ProcessOwners::Ticks ticks_ = 1000;
  NvmlLibrary library_{driver_.path()};
  ProcessOwners owners_{proc_.path(), names_};
  const kube::testing::TempDir folder_;
  const GpuFaultsOptions kept_{folder_.path("faults"), folder_.path("proc"), folder_.path("module")};
  GpuFaults faults_{kept_, log_};
  GpuProbe probe_{library_, owners_, faults_, clock_, log_, [this] { return ticks_; }};
};

TEST_F(GpuProbeTest, ANodeWithoutADriverHasNoGpusAndSaysSoOnce) {
  NvmlLibrary absent("libnvidia-ml-that-is-not-there.so.1");
  GpuProbe probe(absent, owners_, faults_, clock_, log_, [this] { return ticks_; });
  std::string logged;
  for (int second = 0; second < 900; ++second) logged += Look("", probe);

  EXPECT_EQ(CountIn(logged, "\n"), 1) << logged;
  EXPECT_THAT(logged, HasSubstr("no GPU driver"));
  ASSERT_TRUE(probe.newest());
  EXPECT_THAT(probe.newest()->gpus, IsEmpty());
}

TEST_F(GpuProbeTest, ALookHasTheSampleOfEachGpu) {
  const std::string logged = Look(Gpu("GPU-a") + Gpu("GPU-b"));

  EXPECT_EQ(CountIn(logged, "\n"), 1) << logged;
  ASSERT_THAT(Gpus(), SizeIs(2));
  ASSERT_TRUE(Gpus()[1].sample);
  EXPECT_EQ(Gpus()[1].gpu.uuid, "GPU-b");
  EXPECT_EQ(Gpus()[1].sample->memory_used_bytes, 1024u);
}

TEST_F(GpuProbeTest, ALostGpuIsSaidOnceAndItsNumbersAreLeftOut) {
  Look(Gpu("GPU-a") + Gpu("GPU-b"));

  const std::string logged = Look(Gpu("GPU-a", "error=15") + Gpu("GPU-b"), 900);

  EXPECT_EQ(CountIn(logged, "\n"), 1) << logged;
  EXPECT_THAT(logged, HasSubstr("GPU-a"));
  ASSERT_THAT(Gpus(), SizeIs(2));
  EXPECT_FALSE(Gpus()[0].sample);
  EXPECT_EQ(Gpus()[0].peak_memory_used_bytes, std::nullopt);
  EXPECT_TRUE(Gpus()[1].sample) << "the others go on";
}

TEST_F(GpuProbeTest, ALostGpuThatIsStillListedIsSaidOnceToo) {
  Look(Gpu("GPU-a") + Gpu("GPU-b"));
  const std::string logged = Look(Gpu("GPU-a", "error=15 listed=1") + Gpu("GPU-b"), 900);
  EXPECT_EQ(CountIn(logged, "\n"), 1) << logged;
}

TEST_F(GpuProbeTest, ALostGpuThatWorksAgainIsFoundWithinFiveMinutes) {
  Look(Gpu("GPU-a") + Gpu("GPU-b"));
  Look(Gpu("GPU-a", "error=15") + Gpu("GPU-b"), 900);

  const std::string logged = Look(Gpu("GPU-a") + Gpu("GPU-b"), 300);

  EXPECT_EQ(CountIn(logged, "\n"), 1) << logged;
  EXPECT_THAT(logged, HasSubstr("back"));
  ASSERT_THAT(Gpus(), SizeIs(2));
  EXPECT_TRUE(Gpus()[0].sample);
}

TEST_F(GpuProbeTest, ALostDriverIsSaidOnceAndOpenedAgain) {
  for (const char* fault : {"driver error=18\n", "driver error=9\n", "driver init=18 error=1\n"}) {
    Look(Gpu("GPU-a"), 10);
    const std::string lost = Look(fault + Gpu("GPU-a"), 900);
    EXPECT_EQ(CountIn(lost, "\n"), 1) << lost;
    ASSERT_THAT(Gpus(), SizeIs(1));
    EXPECT_FALSE(Gpus()[0].sample);

    const std::string back = Look(Gpu("GPU-a"), 300);
    EXPECT_EQ(CountIn(back, "\n"), 1) << back;
    EXPECT_TRUE(Gpus()[0].sample) << fault;
  }
}

TEST_F(GpuProbeTest, ADriverThatOnlyListsGpusIsSaidOnce) {
  Look(Gpu("GPU-a"), 10);
  const std::string lost = Look(Gpu("GPU-a", "basic=999"), 900);
  EXPECT_EQ(CountIn(lost, "\n"), 1) << lost;
  EXPECT_FALSE(Gpus()[0].sample);
}

TEST_F(GpuProbeTest, GpusTakeTurnsForTheirPartOfTheBus) {
  Look(Gpu("GPU-a") + Gpu("GPU-b"));
  EXPECT_EQ(Gpus()[0].sample->pcie_receive_rate.has_value() + Gpus()[1].sample->pcie_receive_rate.has_value(), 1);
  Look(Gpu("GPU-a") + Gpu("GPU-b"));
  EXPECT_EQ(Gpus()[0].sample->pcie_receive_rate, 1000u);
  EXPECT_EQ(Gpus()[1].sample->pcie_receive_rate, 1000u);
}

TEST_F(GpuProbeTest, AnXidStaysWithItsGpuAndIsSaidOnce) {
  Look(Gpu("GPU-a") + Gpu("GPU-b"));

  std::string logged;
  for (int i = 0; i < 10; ++i) {
    logged += Look(Gpu("GPU-a") + Gpu("GPU-b") + "xid gpu=1 code=94 id=probe" + std::to_string(i) + "\n");
  }

  EXPECT_EQ(Gpus()[0].sample->last_xid, std::nullopt);
  EXPECT_EQ(Gpus()[1].sample->last_xid, 94u);
  EXPECT_EQ(CountIn(logged, "\n"), 1) << logged;
}

TEST_F(GpuProbeTest, AnXidThatNoApplicationCausesIsKept) {
  Look(Gpu("GPU-a"));
  Look(Gpu("GPU-a") + "xid gpu=0 code=31 id=f1\n");
  EXPECT_EQ(Gpus()[0].fault_xid, std::nullopt);
  Look(Gpu("GPU-a") + "xid gpu=0 code=48 id=f2\n");
  Look(Gpu("GPU-a") + "xid gpu=0 code=13 id=f3\n");
  EXPECT_EQ(Gpus()[0].fault_xid, 48u);
  EXPECT_EQ(Gpus()[0].sample->last_xid, 13u);
  Look(Gpu("GPU-a", "error=15"), 10);
  EXPECT_EQ(Gpus()[0].fault_xid, 48u) << "it is lost, too";
}

TEST_F(GpuProbeTest, AnXidThatNoApplicationCausesOutlivesTheAgent) {
  Look(Gpu("GPU-a") + Gpu("GPU-b"));
  Look(Gpu("GPU-a") + Gpu("GPU-b") + "xid gpu=0 code=48 id=r1\nxid gpu=1 code=31 id=r2\n");

  GpuFaults faults(kept_, log_);
  GpuProbe next(library_, owners_, faults, clock_, log_, [this] { return ticks_; });
  const std::string logged = Look(Gpu("GPU-a") + Gpu("GPU-b"), next);

  EXPECT_EQ(next.newest()->gpus[0].fault_xid, 48u);
  EXPECT_EQ(next.newest()->gpus[1].fault_xid, std::nullopt);
  EXPECT_THAT(logged, HasSubstr("sick since before"));
}

TEST_F(GpuProbeTest, ADriverThatIsLoadedAnewMakesGpusWellUntilTheNextXid) {
  Look(Gpu("GPU-a"));
  Look(Gpu("GPU-a") + "xid gpu=0 code=48 id=n1\n");
  Look("driver error=9\n" + Gpu("GPU-a"), 10);
  folder_.Write("module/version", "2");

  Look(Gpu("GPU-a"), 300);
  EXPECT_TRUE(Gpus()[0].sample);
  EXPECT_EQ(Gpus()[0].fault_xid, std::nullopt);
  Look(Gpu("GPU-a") + "xid gpu=0 code=48 id=n2\n");
  EXPECT_EQ(Gpus()[0].fault_xid, 48u);
}

TEST_F(GpuProbeTest, AGpuThatWasReplacedIsForgotten) {
  Look(Gpu("GPU-a"));
  Look(Gpu("GPU-a") + "xid gpu=0 code=48 id=p1\n");
  Look(Gpu("GPU-a", "error=15"), 10);
  Look(Gpu("GPU-c"), 300);
  EXPECT_EQ(GpuFaults(kept_, log_).Of("GPU-a"), std::nullopt);
}

TEST_F(GpuProbeTest, ALookIsCompleteWhenTheDriverAnswersForAllGpus) {
  Look(Gpu("GPU-a") + Gpu("GPU-b", "error=15"));
  EXPECT_FALSE(probe_.newest()->is_complete());
  EXPECT_EQ(probe_.newest()->never_seen, 1u);
  Look(Gpu("GPU-a") + Gpu("GPU-b"), 300);
  EXPECT_TRUE(probe_.newest()->is_complete()) << "it is asked for again";
  EXPECT_EQ(probe_.newest()->never_seen, 0u);

  Look(Gpu("GPU-a") + Gpu("GPU-b", "error=15"), 900);
  EXPECT_FALSE(probe_.newest()->is_complete());
  EXPECT_EQ(probe_.newest()->never_seen, 0u) << "it was seen";
  Look(Gpu("GPU-a") + Gpu("GPU-b"), 300);
  Look("driver error=9\n" + Gpu("GPU-a"), 10);
  EXPECT_FALSE(probe_.newest()->is_open);
  EXPECT_FALSE(probe_.newest()->is_complete());
}

TEST_F(GpuProbeTest, AGpuInThePlaceOfALostOneHasReplacedIt) {
  Look(Gpu("GPU-a") + Gpu("GPU-b"));
  Look(Gpu("GPU-a") + Gpu("GPU-b", "error=15"), 10);

  Look(Gpu("GPU-a") + Gpu("GPU-c"), 300);

  ASSERT_THAT(Gpus(), SizeIs(2));
  EXPECT_EQ(Gpus()[1].gpu.uuid, "GPU-c");
  EXPECT_TRUE(Gpus()[1].sample);
  EXPECT_TRUE(probe_.newest()->is_complete());
}

TEST_F(GpuProbeTest, AKnownGpuThatMovesUpReplacesNone) {
  Look(Gpu("GPU-a") + Gpu("GPU-b"));
  Look(Gpu("GPU-a", "error=15") + Gpu("GPU-b"), 10);

  Look(Gpu("GPU-b"), 300);

  ASSERT_THAT(Gpus(), SizeIs(2)) << "GPU-a is lost";
  EXPECT_FALSE(Gpus()[0].sample);
  EXPECT_EQ(Gpus()[1].gpu.index, 0);
  EXPECT_FALSE(probe_.newest()->is_complete());
}

TEST_F(GpuProbeTest, MeansAndPeaksAreOfTheLastMinutes) {
  Look("gpu uuid=GPU-a util=100 memutil=0 memutil=0 used=3000 total=4096\n");
  Look("gpu uuid=GPU-a util=0 memutil=0 used=1000 total=4096\n");
  EXPECT_EQ(Gpus()[0].mean_utilization_percent, 50);
  EXPECT_EQ(Gpus()[0].peak_memory_used_bytes, 3000u);

  Look("gpu uuid=GPU-a util=0 memutil=0 used=1000 total=4096\n", 60);
  EXPECT_EQ(Gpus()[0].mean_utilization_percent, 0);
  EXPECT_EQ(Gpus()[0].peak_memory_used_bytes, 3000u);
  EXPECT_EQ(Gpus()[0].peak_utilization_percent, 100u);
  EXPECT_EQ(Gpus()[0].peak_memory_controller_percent, 0u);
  Look("gpu uuid=GPU-a util=0 memutil=0 used=1000 total=4096\n", 600);
  EXPECT_EQ(Gpus()[0].peak_memory_used_bytes, 1000u);
  EXPECT_EQ(Gpus()[0].peak_utilization_percent, 0u);
}

TEST_F(GpuProbeTest, TheShareOfAProcessThatIsNewIsLeftOut) {
  const std::string uid = "aaaaaaaa-0000-0000-0000-000000000001";
  const std::string busy = Gpu("GPU-a") + "process gpu=0 pid=7 memory=100 sm=40\nnow us=";
  proc_.PutInPod(7, 100, uid, ContainerId('1'));
  Look(busy + "1000\n");
  Look(busy + "2000\n");
  ASSERT_THAT(Gpus()[0].processes, SizeIs(1));
  EXPECT_EQ(Gpus()[0].processes[0].usage.sm_percent, 40u);

  proc_.PutInPod(7, ticks_ + 1, uid, ContainerId('2'));
  Look(busy + "3000\n");
  ASSERT_THAT(Gpus()[0].processes, SizeIs(1));
  EXPECT_EQ(Gpus()[0].processes[0].usage.sm_percent, std::nullopt) << "the driver counted the one before, too";
  EXPECT_EQ(Gpus()[0].processes[0].usage.memory_bytes, 100u);
  Look(busy + "4000\n");
  EXPECT_EQ(Gpus()[0].processes[0].usage.sm_percent, 40u);
}

TEST_F(GpuProbeTest, AProcessThatEndedDuringTheLookIsCountedAsUnmapped) {
  Look(Gpu("GPU-a") + "process gpu=0 pid=7 memory=100\n");
  EXPECT_THAT(Gpus()[0].processes, IsEmpty());
  EXPECT_EQ(Gpus()[0].unmapped, 1u);
}

}  // namespace
}  // namespace grus

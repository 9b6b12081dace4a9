// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/gpu_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodeagent/nvml.h"
#include "tests/kit/manual_clock.h"
#include "tests/nodeagent/fake_driver.h"
#include "tests/nodeagent/fake_proc.h"

namespace grus {
namespace {

using std::chrono::seconds;
using testing::ContainerId;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kUid = "aaaaaaaa-0000-0000-0000-000000000001", kUnnamed = "bbbbbbbb-0000-0000-0000-000000000002";

class OneName final : public PodNames {
 public:
  std::optional<PodName> Find(const PodOfProcess& pod) const override {
    return pod.pod_uid == kUid ? std::optional(PodName{"team-a", "bert-0", "main"}) : std::nullopt;
  }
};

class GpuMetricsTest : public ::testing::Test {
 protected:
  // Two seconds in which the driver says this; the first one has no shares of processes.
  void Look(const std::string& script) {
    for (int i = 0; i < 2; ++i) {
      clock_.Advance(seconds(1));
      driver_.Play(script + "now us=" + std::to_string(++second_ * 1000) + "\n");
      probe_.LookOnce();
    }
  }
  std::string Text() const { return registry_.Text(); }

  testing::FakeDriver driver_;
  testing::FakeProc proc_;
  OneName names_;
  kube::testing::ManualClock clock_;
  const kube::Log log_{kube::LogLevel::kOff};
  NvmlLibrary library_{driver_.path()};
  ProcessOwners owners_{proc_.path(), names_};
  int second_ = 0;
  GpuFaults faults_{{}, log_};
  GpuProbe probe_{library_, owners_, faults_, clock_, log_, [] { return ProcessOwners::Ticks{1000}; }};
  kube::Registry registry_;
};

TEST_F(GpuMetricsTest, ShowsEachNumberInBaseUnits) {
  AddGpuMetrics(registry_, probe_, clock_);
  Look(
      "driver version=580.95.05\n"
      "gpu uuid=GPU-a model=H100 util=37 memutil=12 used=1000 total=4096 power=250500 pcierx=3 pcietx=4 nvrx=5 "
      "nvtx=6\nxid gpu=0 code=79 id=metrics\n");

  const std::string labels = "{gpu=\"0\",uuid=\"GPU-a\",model=\"H100\"} ";
  for (const std::string& line :
       {"grus_gpu_up" + labels + "1\n", "grus_gpu_utilization_ratio" + labels + "0.37\n",
        "grus_gpu_utilization_minute_ratio" + labels + "0.37\n",
        "grus_gpu_memory_controller_utilization_ratio" + labels + "0.12\n",
        "grus_gpu_memory_used_bytes" + labels + "1000\n", "grus_gpu_memory_used_peak_bytes" + labels + "1000\n",
        "grus_gpu_memory_total_bytes" + labels + "4096\n", "grus_gpu_power_watts" + labels + "250.5\n",
        "grus_gpu_last_xid" + labels + "79\n", "grus_gpu_pcie_receive_bytes_per_second" + labels + "3000\n",
        "grus_gpu_pcie_transmit_bytes_per_second" + labels + "4000\n",
        "grus_gpu_nvlink_receive_bytes_total" + labels + "5120\n",
        "grus_gpu_nvlink_transmit_bytes_total" + labels + "6144\n",
        std::string("# TYPE grus_gpu_nvlink_transmit_bytes_total counter\n"),
        std::string("grus_gpu_info{gpu=\"0\",uuid=\"GPU-a\",model=\"H100\",driver_version=\"580.95.05\"} 1\n")}) {
    EXPECT_THAT(Text(), HasSubstr("\n" + line));
  }
}

TEST_F(GpuMetricsTest, ANumberThatTheDriverLacksIsNotShown) {
  AddGpuMetrics(registry_, probe_, clock_);
  Look("gpu uuid=GPU-a\n");

  EXPECT_THAT(Text(), HasSubstr("\ngrus_gpu_up{gpu=\"0\",uuid=\"GPU-a\",model=\"\"} 1\n"));
  for (const char* name : {"utilization_ratio", "utilization_minute_ratio", "memory_used_bytes", "power_watts",
                           "last_xid", "nvlink_receive_bytes_total", "pcie_receive_bytes_per_second"}) {
    EXPECT_THAT(Text(), Not(HasSubstr("\ngrus_gpu_" + std::string(name) + "{"))) << name;
  }
}

TEST_F(GpuMetricsTest, ALostGpuIsNotUpAndHasNoNumbers) {
  AddGpuMetrics(registry_, probe_, clock_);
  Look("gpu uuid=GPU-a used=1 total=2\n");
  Look("gpu uuid=GPU-a error=15\n");

  EXPECT_THAT(Text(), HasSubstr("\ngrus_gpu_up{gpu=\"0\",uuid=\"GPU-a\",model=\"\"} 0\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("\ngrus_gpu_memory_used_bytes{")));
  EXPECT_THAT(Text(), Not(HasSubstr("\ngrus_gpu_processes{")));
}

TEST_F(GpuMetricsTest, ALookThatIsOldIsNotShown) {
  AddGpuMetrics(registry_, probe_, clock_);
  EXPECT_THAT(Text(), Not(HasSubstr("\ngrus_gpu_up{"))) << "before the first look";
  Look("gpu uuid=GPU-a\n");
  clock_.Advance(seconds(10));
  EXPECT_THAT(Text(), HasSubstr("\ngrus_gpu_up{"));
  clock_.Advance(seconds(1));
  EXPECT_THAT(Text(), Not(HasSubstr("\ngrus_gpu_up{")));
}

TEST_F(GpuMetricsTest, ShowsEachProcessWithItsPod) {
  AddGpuMetrics(registry_, probe_, clock_);
  proc_.PutInPod(7, 100, kUid, ContainerId('1'));
  proc_.PutInPod(8, 100, kUnnamed, ContainerId('2'));
  proc_.Put(9, 100, "0::/system.slice/display-manager.service\n");
  Look(
      "gpu uuid=GPU-a\nprocess gpu=0 pid=7 memory=100 sm=40\nprocess gpu=0 pid=8 memory=200\n"
      "process gpu=0 pid=9 memory=300\nprocess gpu=0 pid=10 memory=400\n");

  const std::string text = Text(), gpu = "{gpu=\"0\",uuid=\"GPU-a\",";
  const std::string bert = gpu + "namespace=\"team-a\",pod=\"bert-0\",container=\"main\",pid=\"7\"} ";
  EXPECT_THAT(text, HasSubstr("\ngrus_gpu_process_memory_bytes" + bert + "100\n"));
  EXPECT_THAT(text, HasSubstr("\ngrus_gpu_process_sm_ratio" + bert + "0.4\n"));
  EXPECT_THAT(text, HasSubstr("\ngrus_gpu_process_memory_bytes" + gpu +
                              "namespace=\"\",pod=\"\",container=\"\",pid=\"8\"} 200\n"));
  EXPECT_THAT(text, Not(HasSubstr("pid=\"10\""))) << "it has ended";
  for (const char* owner : {"pod", "unnamed_pod", "none", "unmapped"}) {
    EXPECT_THAT(text, HasSubstr("\ngrus_gpu_processes" + gpu + "owner=\"" + owner + "\"} 1\n"));
  }
}

TEST_F(GpuMetricsTest, TheNamesOfTheOriginalAreShownByTheirSwitch) {
  proc_.PutInPod(7, 100, kUid, ContainerId('1'));
  Look("gpu uuid=GPU-a\nprocess gpu=0 pid=7 memory=100 sm=40 mem=11\n");
  EXPECT_THAT(Text(), Not(HasSubstr("alnair_gpu")));

  AddAlnairMetrics(registry_, probe_, clock_, "node-1");

  const std::string labels = "{pid=\"7\",gpu_uuid=\"GPU-a\",gpu_idx=\"0\",pod_name=\"bert-0\",nodeName=\"node-1\"} ";
  EXPECT_THAT(Text(), HasSubstr("\nalnair_gpu_util" + labels + "40\n"));
  EXPECT_THAT(Text(), HasSubstr("\nalnair_gpu_mem_util" + labels + "11\n"));
}

TEST_F(GpuMetricsTest, LabelsAreEscaped) {
  AddGpuMetrics(registry_, probe_, clock_);
  Look("gpu uuid=GPU-a model=a\"b\\c\n");
  EXPECT_THAT(Text(), HasSubstr("\ngrus_gpu_up{gpu=\"0\",uuid=\"GPU-a\",model=\"a\\\"b\\\\c\"} 1\n"));
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Our device plugins and the kubelet's own device manager. device_manager_test.sh runs it, with a /var/lib of its own.
#include "tests/nodeagent/device-manager/device_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <thread>

#include "nodeagent/kubelet/plugin_host.h"
#include "nodeagent/sharing/part_plugins.h"
#include "tests/nodeagent/kubelet/scripted_plugin.h"
#include "tests/nodeagent/sharing/part_fakes.h"

namespace grus {
namespace {

namespace fs = std::filesystem;
using grus::testing::DeviceManager;
using grus::testing::ScriptedPlugin;
using kube::Error;
using kube::ErrorCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Ids = ScriptedPlugin::Ids;

constexpr char kMilli[] = "ai.centauruscloud.io/gpu-milli", kMemory[] = "alnair/vgpu-memory",
               kCompute[] = "alnair/vgpu-compute";

class DeviceManagerTest : public ::testing::Test {
 protected:
  // A plugin that the agent hosts: what one process is to the kubelet.
  struct Agent {
    explicit Agent(const std::vector<DevicePlugin*>& plugins) : host(plugins, kDevicePluginFolder, clock, log) {
      running = std::jthread([this](const std::stop_token& stop) { host.Run(stop); });
    }
    kube::SystemClock clock;
    kube::Log log;
    PluginHost host;
    std::jthread running;
  };

  DeviceManagerTest() {
    fs::remove_all("/var/lib/kubelet");
    fs::create_directories(kDevicePluginFolder);
    manager_.Must("start");
  }

  void Await(const std::string& resource, int count) {
    manager_.Must("await " + resource + " " + std::to_string(count));
  }
  // The kubelet restarts: how long after its socket is there it knows so many plugins again.
  std::chrono::duration<double, std::milli> Restart(int plugins) {
    using std::chrono::microseconds, std::chrono::system_clock;
    const int before = agent_->host.registrations();
    const std::int64_t started = *manager_.Must("restart").At({"microseconds"})->AsInt();
    for (int i = 0; i < 20'000 && agent_->host.registrations() < before + plugins; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return system_clock::now() - system_clock::time_point(microseconds(started));
  }
  std::int64_t Capacity(const std::string& resource) {
    const kube::Json answer = manager_.Must("capacity");
    const kube::Json* count = answer.At({"capacity", resource});
    return count == nullptr ? 0 : *count->AsInt();
  }
  Ids Held(const std::string& pod, const std::string& resource) {
    const kube::Json answer = manager_.Must("held " + pod);
    Ids ids;
    const kube::Json* held = answer.At({"devices", resource});
    if (held == nullptr) return ids;
    for (const kube::Json& id : *held->AsArray()) ids.push_back(*id.AsString());
    return ids;
  }

  DeviceManager manager_;
  ScriptedPlugin milli_{kMilli, 8}, memory_{kMemory, 4};
  std::unique_ptr<Agent> agent_ = std::make_unique<Agent>(std::vector<DevicePlugin*>{&milli_, &memory_});
};

TEST_F(DeviceManagerTest, DevicesAndTheirHealthAreCapacityAndAllocatable) {
  Await(kMilli, 8);
  Await(kMemory, 4);
  milli_.SetHealth("GPU-1_0003", false);
  agent_->host.NotifyChanged();
  Await(kMilli, 7);
  EXPECT_EQ(Capacity(kMilli), 8);
  milli_.SetHealth("GPU-1_0003", true);
  agent_->host.NotifyChanged();
  Await(kMilli, 8);
}

TEST_F(DeviceManagerTest, AContainerGetsThePreferredIdsAndWhatComesWithThem) {
  Await(kMilli, 8);
  manager_.Must("allocate a " + std::string(kMilli) + "=3");
  EXPECT_THAT(Held("a", kMilli), ElementsAre("GPU-1_0005", "GPU-1_0006", "GPU-1_0007"));
  manager_.Must("allocate b " + std::string(kMilli) + "=2");
  EXPECT_THAT(Held("b", kMilli), ElementsAre("GPU-1_0003", "GPU-1_0004"));
  const kube::Json got = manager_.Must("run b");
  EXPECT_EQ(*got.At({"environment", "GRUS_TEST_IDS"})->AsString(), "GPU-1_0003,GPU-1_0004");
  EXPECT_EQ(*got.At({"devices", "host"})->AsArray()->at(0).AsString(), "/dev/null");
  EXPECT_EQ(*got.At({"devices", "mounts"})->AsArray()->at(0).AsString(), "/usr/lib/grus:/opt/grus:true");
}

TEST_F(DeviceManagerTest, ARefusedAllocationIsTheKubeletsErrorInThePluginsWords) {
  Await(kMilli, 8);
  milli_.RefuseAllocate(Error(ErrorCode::kUnavailable, "its ids lie on two GPUs"));
  EXPECT_THAT(DeviceManager::Error(manager_.Ask("allocate a " + std::string(kMilli) + "=3")),
              HasSubstr("its ids lie on two GPUs"));
  milli_.RefuseAllocate(std::nullopt);
  manager_.Must("allocate b " + std::string(kMilli) + "=8");
  EXPECT_EQ(Held("b", kMilli).size(), 8U) << "what was refused is free again";
}

TEST_F(DeviceManagerTest, PreStartComesBeforeEachStartOfAContainerAndAllocateOnce) {
  Await(kMilli, 8);
  manager_.Must("allocate a " + std::string(kMilli) + "=2");
  EXPECT_THAT(milli_.started(), IsEmpty());
  const Ids ids = Held("a", kMilli);
  manager_.Must("run a");
  manager_.Must("run a");
  EXPECT_THAT(milli_.started(), ElementsAre(ids, ids));
  EXPECT_THAT(milli_.allocated(), ElementsAre(ids));
  manager_.Must("restart");
  Await(kMilli, 8);
  manager_.Must("run a");
  EXPECT_THAT(milli_.started(), ElementsAre(ids, ids, ids)) << "after a restart of the kubelet, too";
  EXPECT_THAT(milli_.allocated(), ElementsAre(ids));
  EXPECT_EQ(Held("a", kMilli), ids);
}

TEST_F(DeviceManagerTest, ARefusedPreStartDelaysTheContainer) {
  Await(kMilli, 8);
  manager_.Must("allocate a " + std::string(kMilli) + "=2");
  milli_.RefusePreStart(Error(ErrorCode::kUnavailable, "the pod is not known yet"));
  EXPECT_THAT(DeviceManager::Error(manager_.Ask("run a")), HasSubstr("the pod is not known yet"));
  milli_.RefusePreStart(std::nullopt);
  manager_.Must("run a");
  EXPECT_EQ(Held("a", kMilli).size(), 2U);
}

TEST_F(DeviceManagerTest, AnAgentThatStopsTakesItsDevicesFromAllocatableAndTheNextBringsThemBack) {
  Await(kMilli, 8);
  manager_.Must("allocate a " + std::string(kMilli) + "=2");
  const Ids ids = Held("a", kMilli);
  for (int i = 0; i < 10; ++i) {
    agent_ = nullptr;
    Await(kMilli, 0);
    EXPECT_EQ(Capacity(kMilli), 8);
    agent_ = std::make_unique<Agent>(std::vector<DevicePlugin*>{&milli_, &memory_});
    Await(kMilli, 8);
    Await(kMemory, 4);
  }
  EXPECT_EQ(Held("a", kMilli), ids);
}

TEST_F(DeviceManagerTest, ASocketThatIsRemovedUnderARunningKubeletComesBackAndStays) {
  Await(kMilli, 8);
  for (int i = 0; i < 5; ++i) {
    fs::remove(std::string(kDevicePluginFolder) + "/grus-ai_centauruscloud_io_gpu-milli.sock");
    Await(kMilli, 0);
    Await(kMilli, 8);
  }
  manager_.Must("allocate a " + std::string(kMilli) + "=8");
}

// The agent's plugin for thousandths, of eight GPUs.
class ThousandthsTest : public DeviceManagerTest {
 protected:
  ThousandthsTest() {
    agent_ = nullptr;
    parts_.Look(grus::testing::GpusOf(8, 80));
    agent_ = std::make_unique<Agent>(parts_.plugins());
    Await(kMilli, 8000);
  }
  std::string Refusal(const std::string& pod, int milli) {
    return DeviceManager::Error(manager_.Ask("allocate " + pod + " " + kMilli + "=" + std::to_string(milli)));
  }
  std::vector<PartId> IdsOf(const std::string& pod) { return ParsePartIds(Held(pod, kMilli)); }

  grus::testing::FakeHolders holders_;
  grus::testing::FakePending pending_;
  const kube::SystemClock clock_;
  const kube::Log log_;
  PartPlugins parts_{holders_, pending_, {.mode = SharingMode::kMilli}, clock_, log_};
};

TEST_F(ThousandthsTest, AContainerThatAsksForWholeGpusGetsAllIdsOfGpusOfWhichNobodyHasAny) {
  EXPECT_EQ(Refusal("small", 300), "");
  EXPECT_THAT(Refusal("odd", 1500), HasSubstr("ask for 1 to 1000, or for a multiple of 1000: whole GPUs"));
  EXPECT_EQ(Refusal("pair", 2000), "");
  EXPECT_TRUE(AreWholeGpus(PartResource::kMilli, IdsOf("pair")));
  EXPECT_THAT(GpusOf(IdsOf("pair")), ElementsAre("GPU-1", "GPU-2"));
  const kube::Json got = manager_.Must("run pair");
  EXPECT_EQ(*got.At({"environment", "NVIDIA_VISIBLE_DEVICES"})->AsString(), "GPU-1,GPU-2");
  EXPECT_EQ(*got.At({"environment", "GRUS_GPU_MILLI"})->AsString(), "1000,1000");

  parts_.SetPlacement(PartPlacement::kSpread);
  EXPECT_EQ(Refusal("other", 300), "");
  EXPECT_THAT(GpusOf(IdsOf("other")), ElementsAre("GPU-3"));
  EXPECT_THAT(Refusal("five", 5000), HasSubstr("5 whole GPUs, and of those that work nobody has a part of 4"));
  manager_.Must("remove other");
  parts_.SetPlacement(PartPlacement::kPack);
  EXPECT_EQ(Refusal("part", 700), "");
  EXPECT_THAT(GpusOf(IdsOf("part")), ElementsAre("GPU-0"));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(Refusal("five", 5000), "");
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
  std::printf("the kubelet's device manager allocates 5,000 of 8,000 ids in %.0f ms\n", took.count());
  EXPECT_TRUE(AreWholeGpus(PartResource::kMilli, IdsOf("five")));
  manager_.Must("restart");
  Await(kMilli, 8000);
  manager_.Must("run five");
  EXPECT_THAT(GpusOf(IdsOf("five")), ElementsAre("GPU-3", "GPU-4", "GPU-5", "GPU-6", "GPU-7"));
}

TEST_F(DeviceManagerTest, AKubeletThatRestartsFiftyTimesKnowsThePluginsWithinASecondEachTime) {
  ScriptedPlugin milli(kMilli, 1000), memory(kMemory, 80), compute(kCompute, 100);
  agent_ = nullptr;
  agent_ = std::make_unique<Agent>(std::vector<DevicePlugin*>{&milli, &memory, &compute});
  Await(kMilli, 1000);
  manager_.Must("allocate a " + std::string(kMilli) + "=300");
  const Ids ids = Held("a", kMilli);
  std::vector<double> took;
  for (int i = 0; i < 50; ++i) {
    took.push_back(Restart(3).count());
    EXPECT_LT(took.back(), 1000) << "restart " << i;
    Await(kMilli, 1000);
    Await(kMemory, 80);
    Await(kCompute, 100);
  }
  EXPECT_EQ(Held("a", kMilli), ids) << "by the kubelet's checkpoint";
  std::ranges::sort(took);
  std::printf("3 plugins registered after the kubelet's socket is there, 50 restarts: median %.0f ms, max %.0f ms\n",
              took[25], took.back());
}

TEST_F(DeviceManagerTest, AnAgentThatIsKilledLeavesASocketThatTheNextReplacesAndIsSmallAtRest) {
  agent_ = nullptr;
  Await(kMilli, 0);
  const auto probe = fs::read_symlink("/proc/self/exe").parent_path() / "plugin_probe";
  const std::vector<std::string> words = {probe, "8000", kMilli, kMemory, kCompute};
  auto process = std::make_unique<kit::ChildProcess>(words);
  Await(kMilli, 8000);
  process->Signal(SIGKILL);
  process->WaitForExit();
  Await(kMilli, 0);
  process = std::make_unique<kit::ChildProcess>(words);
  for (const char* resource : {kMilli, kMemory, kCompute}) Await(resource, 8000);
  manager_.Must("restart");
  for (const char* resource : {kMilli, kMemory, kCompute}) Await(resource, 8000);
  const double cpu = process->CpuSeconds();
  std::this_thread::sleep_for(std::chrono::seconds(5));
  const double core = (process->CpuSeconds() - cpu) / 5 * 100, memory = process->MemoryMib();
  const fs::directory_iterator threads("/proc/" + std::to_string(process->NumberAfter("pid=")) + "/task");
  std::printf("at rest, 3 plugins of 8,000 ids: %.1f MiB, %td threads, %.2f %% of a core\n", memory,
              std::distance(begin(threads), end(threads)), core);
  EXPECT_LT(memory, 40);
  EXPECT_EQ(process->Terminate(), 0);
  Await(kMilli, 0);
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/plugin_host.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "nodeagent/kubelet/plugin_server.h"
#include "nodeagent/kubelet/plugin_socket.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/kubelet/fake_kubelet.h"
#include "tests/nodeagent/kubelet/scripted_plugin.h"

namespace grus {
namespace {

namespace fs = std::filesystem;
using grus::testing::FakeKubelet;
using grus::testing::ScriptedPlugin;
using ::testing::HasSubstr;

constexpr char kMilli[] = "ai.centauruscloud.io/gpu-milli";
constexpr char kMemory[] = "alnair/vgpu-memory";

// What is logged while it lives.
class LogFile {
 public:
  LogFile() : stderr_(dup(STDERR_FILENO)) {
    const int file = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(file, STDERR_FILENO);
    close(file);
  }
  ~LogFile() {
    dup2(stderr_, STDERR_FILENO);
    close(stderr_);
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  int Times(const std::string& part) const {
    const std::string all = text();
    int times = 0;
    for (auto at = all.find(part); at != std::string::npos; at = all.find(part, at + 1)) ++times;
    return times;
  }

 private:
  kube::testing::TempDir folder_;
  const std::string path_ = folder_.path("log");
  const int stderr_;
};

class PluginHostTest : public ::testing::Test {
 protected:
  void Start() {
    running_ = std::jthread([this](const std::stop_token& stop) { host_.Run(stop); });
  }
  void Stop() { running_ = {}; }
  std::string SocketOf(const std::string& resource) const { return folder_ + "/" + SocketNameOf(resource); }
  static bool Await(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return condition();
  }
  bool AwaitRegistered(int count = 2) {
    return Await([&] { return host_.registered() == count; });
  }
  kube::testing::TempDir root_;
  std::string folder_ = root_.path("plugins");
  const bool made_ = fs::create_directory(folder_);
  kube::SystemClock clock_;
  kube::Log log_;
  ScriptedPlugin milli_{kMilli, 3}, memory_{kMemory, 2};
  PluginHost host_{{&milli_, &memory_}, folder_, clock_, log_};
  std::jthread running_;
};

TEST_F(PluginHostTest, RegistersEachPluginWithItsSocketAndOptions) {
  FakeKubelet kubelet(folder_);
  Start();
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 1) && kubelet.AwaitLists(kMemory, 1));
  const v1beta1::RegisterRequest request = kubelet.plugin(kMilli).registrations.at(0);
  EXPECT_EQ(request.version(), "v1beta1");
  EXPECT_EQ(request.endpoint(), "grus-ai_centauruscloud_io_gpu-milli.sock");
  EXPECT_TRUE(request.options().pre_start_required());
  EXPECT_TRUE(request.options().get_preferred_allocation_available());
  EXPECT_EQ(kubelet.plugin(kMemory).registrations.at(0).endpoint(), "grus-alnair_vgpu-memory.sock");
  EXPECT_EQ(fs::status(SocketOf(kMilli)).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_TRUE(AwaitRegistered());
}

TEST_F(PluginHostTest, SendsTheWholeListAtOnceAndAgainAfterEachChange) {
  FakeKubelet kubelet(folder_);
  Start();
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 1));
  const auto first = kubelet.plugin(kMilli).lists.at(0);
  ASSERT_EQ(first.devices_size(), 3);
  EXPECT_EQ(first.devices(1).id(), "GPU-1_0001");
  EXPECT_EQ(first.devices(1).health(), "Healthy");
  milli_.SetHealth("GPU-1_0001", false);
  host_.NotifyChanged();
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 2));
  const auto second = kubelet.plugin(kMilli).lists.at(1);
  ASSERT_EQ(second.devices_size(), 3);
  EXPECT_EQ(second.devices(1).health(), "Unhealthy");
  EXPECT_EQ(second.devices(2).health(), "Healthy");
}

TEST_F(PluginHostTest, RegistersAgainWithAKubeletThatRestarts) {
  const LogFile log;
  auto kubelet = std::make_unique<FakeKubelet>(folder_);
  Start();
  ASSERT_TRUE(kubelet->AwaitLists(kMilli, 1));
  for (int i = 0; i < 5; ++i) {
    kubelet.reset();
    kubelet = std::make_unique<FakeKubelet>(folder_);
    ASSERT_TRUE(kubelet->AwaitLists(kMilli, 1) && kubelet->AwaitLists(kMemory, 1));
  }
  EXPECT_EQ(log.Times("another one has"), 0) << "its own old server is in nobody's way\n" << log.text();
}

TEST_F(PluginHostTest, ACallOfADeadKubeletThatRunsOnDoesNotDelayTheNext) {
  auto kubelet = std::make_unique<FakeKubelet>(folder_);
  Start();
  ASSERT_TRUE(kubelet->AwaitLists(kMilli, 1));
  milli_.HoldPreStart(true);
  std::jthread caller([stub = kubelet->Dial(kMilli)] {
    grpc::ClientContext context;
    v1beta1::PreStartContainerResponse response;
    stub->PreStartContainer(&context, {}, &response);
  });
  ASSERT_TRUE(Await([&] { return milli_.is_starting(); }));
  kubelet = nullptr;
  kubelet = std::make_unique<FakeKubelet>(folder_);
  EXPECT_TRUE(kubelet->AwaitLists(kMilli, 1));
  EXPECT_TRUE(milli_.is_starting());
  milli_.HoldPreStart(false);
}

TEST_F(PluginHostTest, AfterAnAgentThatWasKilledTheKubeletGetsTimeToNoticeBeforeTheNextIsRegistered) {
  FakeKubelet kubelet(folder_);
  ScriptedPlugin before(kMilli, 1);
  DeviceChanges changes(clock_);
  auto killed = PluginServer::Start(before, SocketOf(kMilli), changes, [] {});
  ASSERT_TRUE(killed) << killed.error().message();
  fs::rename(SocketOf(kMilli), root_.path("left"));
  *killed = nullptr;
  ASSERT_TRUE(fs::is_socket(root_.path("left")));
  fs::rename(root_.path("left"), SocketOf(kMilli));

  const kube::TimePoint began = clock_.Now();
  Start();
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 1));
  EXPECT_GE(clock_.Now() - began, std::chrono::milliseconds(200));
  EXPECT_TRUE(AwaitRegistered());
}

TEST_F(PluginHostTest, ServesAndRegistersAgainWhenItsSocketIsRemoved) {
  FakeKubelet kubelet(folder_);
  Start();
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 1) && AwaitRegistered());
  fs::remove(SocketOf(kMilli));
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 2));
  EXPECT_TRUE(fs::is_socket(SocketOf(kMilli)));
  EXPECT_EQ(kubelet.plugin(kMilli).registrations.size(), 2U);
  EXPECT_EQ(kubelet.plugin(kMilli).watches_ended, 1) << "the old connection must end before the new one begins";
  EXPECT_EQ(kubelet.plugin(kMemory).registrations.size(), 1U) << "the other plugin is as it was";
}

TEST_F(PluginHostTest, ServesAndRegistersAgainWhenAnotherFileTakesItsPlace) {
  FakeKubelet kubelet(folder_);
  Start();
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 1) && AwaitRegistered());
  fs::rename(root_.Write("stranger", "text"), SocketOf(kMilli));
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 2));
  EXPECT_TRUE(fs::is_socket(SocketOf(kMilli)));
}

TEST_F(PluginHostTest, TellsOnceWhoHasItsSocketAndServesWhenThatEnds) {
  FakeKubelet kubelet(folder_);
  ScriptedPlugin other(kMilli, 1, "GPU-OTHER");
  DeviceChanges changes(clock_);
  auto taker = PluginServer::Start(other, SocketOf(kMilli), changes, [] {});
  ASSERT_TRUE(taker) << taker.error().message();
  const LogFile log;
  Start();
  ASSERT_TRUE(kubelet.AwaitLists(kMemory, 1));
  for (int i = 0; i < 3; ++i) {  // Each is a reason to try again.
    fs::remove(SocketOf(kMemory));
    ASSERT_TRUE(kubelet.AwaitLists(kMemory, static_cast<std::size_t>(i) + 2));
  }
  EXPECT_TRUE(kubelet.plugin(kMilli).registrations.empty());
  EXPECT_TRUE((*taker)->IsInPlace()) << "the socket of the living is left alone";
  *taker = nullptr;
  EXPECT_TRUE(kubelet.AwaitLists(kMilli, 1));
  Stop();
  EXPECT_EQ(log.Times("another one has a device plugin's socket"), 1) << log.text();
  EXPECT_THAT(log.text(),
              HasSubstr(SocketOf(kMilli) + " is taken by process " + std::to_string(getpid()) + " (kubelet_test)"));
}

TEST_F(PluginHostTest, WaitsForTheFolderAndTellsOnce) {
  fs::remove(folder_);
  const LogFile log;
  Start();
  ASSERT_TRUE(Await([&] { return log.Times("is not there: no kubelet runs on this node") > 0; }));
  fs::create_directory(folder_);
  FakeKubelet kubelet(folder_);
  EXPECT_TRUE(kubelet.AwaitLists(kMilli, 1));
  Stop();
  EXPECT_EQ(log.Times("is not there: no kubelet runs on this node"), 1) << log.text();
}

TEST_F(PluginHostTest, WaitsForTheKubeletAndTellsOnceThenTellsOfItsSuccess) {
  const LogFile log;
  Start();
  ASSERT_TRUE(Await([&] { return fs::exists(SocketOf(kMemory)); }));
  EXPECT_EQ(host_.registered(), 0);
  FakeKubelet kubelet(folder_);
  EXPECT_TRUE(kubelet.AwaitLists(kMilli, 1) && kubelet.AwaitLists(kMemory, 1) && AwaitRegistered());
  Stop();
  EXPECT_EQ(log.Times("kubelet.sock is not there: the plugin waits for the kubelet"), 2) << log.text();
  EXPECT_EQ(log.Times("the kubelet knows a device plugin"), 2) << log.text();
}

TEST_F(PluginHostTest, IsRegisteredAgainWhenTheKubeletStopsToWatch) {
  FakeKubelet kubelet(folder_);
  Start();
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 1) && kubelet.AwaitLists(kMemory, 1) && AwaitRegistered());
  kubelet.DropWatches();
  EXPECT_TRUE(kubelet.AwaitLists(kMilli, 2) && kubelet.AwaitLists(kMemory, 2));
}

TEST_F(PluginHostTest, ARefusalIsToldOnceAndTriedAgain) {
  FakeKubelet kubelet(folder_);
  kubelet.Refuse(grpc::Status(grpc::StatusCode::UNKNOWN, "the resource name is invalid"));
  const LogFile log;
  Start();
  ASSERT_TRUE(kubelet.Await(kMilli, [](const auto& plugin) { return plugin.registrations.size() >= 3; }));
  kubelet.Refuse(std::nullopt);
  EXPECT_TRUE(kubelet.AwaitLists(kMilli, 1));
  Stop();
  EXPECT_EQ(log.Times("register ai.centauruscloud.io/gpu-milli with the kubelet: the resource name is invalid"), 1)
      << log.text();
}

TEST_F(PluginHostTest, StopEndsWatchesAtOnceAndRemovesTheSockets) {
  FakeKubelet kubelet(folder_);
  Start();
  ASSERT_TRUE(kubelet.AwaitLists(kMilli, 1) && kubelet.AwaitLists(kMemory, 1) && AwaitRegistered());
  Stop();
  EXPECT_FALSE(fs::exists(SocketOf(kMilli)) || fs::exists(SocketOf(kMemory)));
  EXPECT_TRUE(kubelet.Await(kMilli, [](const auto& plugin) { return plugin.watches_ended == 1; }));
  EXPECT_EQ(host_.registered(), 0);
}

TEST_F(PluginHostTest, StopLeavesTheFileThatAnotherPutInItsPlace) {
  Start();
  ASSERT_TRUE(Await([&] { return fs::exists(SocketOf(kMilli)) && fs::exists(SocketOf(kMemory)); }));
  ScriptedPlugin other(kMilli, 1);
  DeviceChanges changes(clock_);
  auto taker = PluginServer::Start(other, root_.path("taker"), changes, [] {});
  ASSERT_TRUE(taker) << taker.error().message();
  fs::rename(root_.path("taker"), SocketOf(kMilli));  // A living one, so it is not replaced.
  Stop();
  EXPECT_TRUE(fs::exists(SocketOf(kMilli)));
}

}  // namespace
}  // namespace grus

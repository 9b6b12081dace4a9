// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/plugin_server.h"

#include <gtest/gtest.h>

#include <fstream>

#include "nodeagent/kubelet/plugin_socket.h"
#include "tests/kit/must.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/kubelet/fake_kubelet.h"
#include "tests/nodeagent/kubelet/scripted_plugin.h"

namespace grus {
namespace {

namespace fs = std::filesystem;
using grus::testing::ChannelTo;
using grus::testing::ScriptedPlugin;
using kube::Error;
using kube::ErrorCode;
using Ids = ScriptedPlugin::Ids;

class PluginServerTest : public ::testing::Test {
 protected:
  kube::testing::TempDir root_;
  const std::string path_ = root_.path("plugin.sock");
  kube::SystemClock clock_;
  DeviceChanges changes_{clock_};
  ScriptedPlugin plugin_{"alnair/vgpu-memory", 8000, "GPU-8c5a7e5b-1c5f-4a9b-93f3-1f0f3a1d2e4c"};
  std::unique_ptr<PluginServer> server_ = kit::Must(PluginServer::Start(plugin_, path_, changes_, [] {}));
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_ = v1beta1::DevicePlugin::NewStub(ChannelTo(path_));
  grpc::ClientContext context_;
};

TEST_F(PluginServerTest, ListsThousandsOfDevicesInOneMessage) {
  const auto reader = stub_->ListAndWatch(&context_, {});
  v1beta1::ListAndWatchResponse list;
  ASSERT_TRUE(reader->Read(&list));
  EXPECT_EQ(list.devices_size(), 8000);
  EXPECT_LT(list.ByteSizeLong(), 4U << 20) << "the kubelet takes no more in one message";
  server_ = nullptr;
  EXPECT_FALSE(reader->Read(&list));
  reader->Finish();
}

TEST_F(PluginServerTest, PrefersAmongThousandsOfIds) {
  v1beta1::PreferredAllocationRequest request;
  auto& asked = *request.add_container_requests();
  for (const PluginDevice& device : plugin_.Devices()) asked.add_available_deviceids(device.id);
  asked.add_must_include_deviceids(plugin_.Devices()[5].id);
  asked.set_allocation_size(3);
  v1beta1::PreferredAllocationResponse response;
  const grpc::Status status = stub_->GetPreferredAllocation(&context_, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.container_responses_size(), 1);
  const auto& ids = response.container_responses(0).deviceids();
  EXPECT_EQ(Ids(ids.begin(), ids.end()),
            (Ids{plugin_.Devices()[5].id, plugin_.Devices()[7999].id, plugin_.Devices()[7998].id}));
}

TEST_F(PluginServerTest, AnswersEachContainerWithWhatThePluginGivesIt) {
  v1beta1::AllocateRequest request;
  request.add_container_requests()->add_devices_ids("a");
  request.add_container_requests()->add_devices_ids("b");
  v1beta1::AllocateResponse response;
  ASSERT_TRUE(stub_->Allocate(&context_, request, &response).ok());
  ASSERT_EQ(response.container_responses_size(), 2);
  EXPECT_EQ(response.container_responses(0).envs().at("GRUS_TEST_IDS"), "a");
  const auto& second = response.container_responses(1);
  EXPECT_EQ(second.envs().at("GRUS_TEST_IDS"), "b");
  ASSERT_EQ(second.mounts_size(), 1);
  EXPECT_EQ(second.mounts(0).host_path(), "/usr/lib/grus");
  EXPECT_EQ(second.mounts(0).container_path(), "/opt/grus");
  EXPECT_TRUE(second.mounts(0).read_only());
  ASSERT_EQ(second.devices_size(), 1);
  EXPECT_EQ(second.devices(0).host_path(), "/dev/null");
  EXPECT_EQ(second.devices(0).container_path(), "/dev/null");
  EXPECT_EQ(second.devices(0).permissions(), "rw");
}

TEST_F(PluginServerTest, AnErrorOfThePluginReachesTheKubeletInItsOwnWords) {
  plugin_.RefuseAllocate(Error(ErrorCode::kNotFound, "GPU-1 is lost"));
  v1beta1::AllocateRequest request;
  request.add_container_requests()->add_devices_ids("a");
  v1beta1::AllocateResponse response;
  const grpc::Status refused = stub_->Allocate(&context_, request, &response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(refused.error_message(), "GPU-1 is lost");

  plugin_.RefusePreStart(Error(ErrorCode::kUnavailable, "the pod is not known yet"));
  grpc::ClientContext context;
  v1beta1::PreStartContainerResponse started;
  const grpc::Status delayed = stub_->PreStartContainer(&context, {}, &started);
  EXPECT_EQ(delayed.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(delayed.error_message(), "the pod is not known yet");
}

TEST_F(PluginServerTest, StartsContainersWithTheirIds) {
  v1beta1::PreStartContainerRequest request;
  request.add_devices_ids("b");
  request.add_devices_ids("a");
  v1beta1::PreStartContainerResponse response;
  ASSERT_TRUE(stub_->PreStartContainer(&context_, request, &response).ok());
  EXPECT_EQ(plugin_.started(), std::vector<Ids>({{"a", "b"}}));
}

TEST_F(PluginServerTest, AWatchWhoseKubeletHasGoneEndsAndIsTold) {
  std::atomic<int> ended = 0;
  const auto server = kit::Must(PluginServer::Start(plugin_, root_.path("other.sock"), changes_, [&] { ++ended; }));
  const auto stub = v1beta1::DevicePlugin::NewStub(ChannelTo(root_.path("other.sock")));
  const auto reader = stub->ListAndWatch(&context_, {});
  v1beta1::ListAndWatchResponse list;
  ASSERT_TRUE(reader->Read(&list));
  EXPECT_EQ(server->open_watches(), 1);
  context_.TryCancel();
  reader->Finish();
  for (int i = 0; i < 2000 && ended == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(ended, 1);
  EXPECT_EQ(server->open_watches(), 0);
  EXPECT_EQ(server->total_watches(), 1);
}

TEST(PluginSocket, NamesAreThoseOfTheResourceWithoutSlashesAndDots) {
  EXPECT_EQ(SocketNameOf("ai.centauruscloud.io/gpu-milli"), "grus-ai_centauruscloud_io_gpu-milli.sock");
  EXPECT_EQ(SocketNameOf("alnair/vgpu-compute"), "grus-alnair_vgpu-compute.sock");
}

TEST(PluginSocket, OnlyWhatNobodyListensAtIsReplaced) {
  const kube::testing::TempDir root;
  kube::SystemClock clock;
  DeviceChanges changes(clock);
  ScriptedPlugin plugin("a/b", 1);
  const auto living = kit::Must(PluginServer::Start(plugin, root.path("living"), changes, [] {}));
  fs::create_directory(root.path("folder"));
  fs::create_symlink("nowhere", root.path("link"));
  root.Write("file", "text");
  {  // As a process leaves it that is killed: the file stays when its socket is closed.
    const auto killed = kit::Must(PluginServer::Start(plugin, root.path("killed"), changes, [] {}));
    fs::rename(root.path("killed"), root.path("stale"));
  }
  struct Case {
    std::string name;
    bool is_free;
  };
  for (const Case& c :
       {Case{"living", false}, {"folder", false}, {"link", true}, {"file", true}, {"stale", true}, {"new", true}}) {
    EXPECT_EQ(CheckSocketPath(root.path(c.name)).ok(), c.is_free) << c.name;
    const auto server = PluginServer::Start(plugin, root.path(c.name), changes, [] {});
    EXPECT_EQ(server.ok(), c.is_free) << c.name;
    if (!server) {
      EXPECT_EQ(server.error().code(), ErrorCode::kAlreadyExists) << c.name;
    }
  }
  EXPECT_TRUE(living->IsInPlace());
}

TEST(PluginSocket, APathThatIsTooLongIsAnErrorThatSaysSo) {
  const kube::testing::TempDir root;
  kube::SystemClock clock;
  DeviceChanges changes(clock);
  ScriptedPlugin plugin("a/b", 1);
  const auto server = PluginServer::Start(plugin, root.path(std::string(120, 'x')), changes, [] {});
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message().find("fewer than 108 characters"), std::string::npos) << server.error().message();
}

}  // namespace
}  // namespace grus

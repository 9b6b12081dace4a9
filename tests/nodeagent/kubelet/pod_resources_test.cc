// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/pod_resources.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <podresources/v1/api.grpc.pb.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

using kube::ErrorCode;

// The kubelet's answer, or its silence.
class Lister final : private v1::PodResourcesLister::Service {
 public:
  explicit Lister(const std::string& socket, v1::ListPodResourcesResponse answer = {}, bool hangs = false)
      : answer_(std::move(answer)), hangs_(hangs) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Lister() override {
    {
      std::lock_guard lock(mutex_);
      hangs_ = false;
      ended_.notify_all();
    }
    server_->Shutdown();
  }

 private:
  grpc::Status List(grpc::ServerContext*, const v1::ListPodResourcesRequest*,
                    v1::ListPodResourcesResponse* response) override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return !hangs_; });
    *response = answer_;
    return grpc::Status::OK;
  }

  const v1::ListPodResourcesResponse answer_;
  std::mutex mutex_;  // Guards what follows.
  std::condition_variable ended_;
  bool hangs_;
  std::unique_ptr<grpc::Server> server_;
};

v1::ContainerResources& AddContainer(v1::ListPodResourcesResponse& answer, const std::string& ns,
                                     const std::string& pod, const std::string& container) {
  v1::PodResources& added = *answer.add_pod_resources();
  added.set_namespace_(ns);
  added.set_name(pod);
  added.add_containers()->set_name(container);
  return *added.mutable_containers(0);
}
void AddDevices(v1::ContainerResources& container, const std::string& resource, const std::vector<std::string>& ids) {
  v1::ContainerDevices& added = *container.add_devices();
  added.set_resource_name(resource);
  added.mutable_device_ids()->Assign(ids.begin(), ids.end());
}

TEST(PodResources, ListsWhoHoldsWhatSortedAlsoWhoHoldsNothing) {
  v1::ListPodResourcesResponse answer;
  AddDevices(AddContainer(answer, "team-b", "first", "main"), "a/b", {"2"});
  AddContainer(answer, "team-a", "idle", "main");
  v1::ContainerResources& two = AddContainer(answer, "team-a", "two", "main");
  AddDevices(two, "a/b", {"9", "3"});  // Of two NUMA nodes.
  AddDevices(two, "a/b", {"7", "1"});
  AddDevices(two, "a/c", {"x"});
  const kube::testing::TempDir root;
  const Lister kubelet(root.path("kubelet.sock"), answer);
  PodResources resources(root.path("kubelet.sock"));
  const auto held = resources.List();
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(*held, std::vector<HeldDevices>({
                       {"team-a", "idle", "main", {}},
                       {"team-a", "two", "main", {{"a/b", {"1", "3", "7", "9"}}, {"a/c", {"x"}}}},
                       {"team-b", "first", "main", {{"a/b", {"2"}}}},
                   }));
}

TEST(PodResources, TakesAnswersOfManyMegabytes) {
  v1::ListPodResourcesResponse answer;
  const std::vector<std::string> ids(1000, "GPU-8c5a7e5b-1c5f-4a9b-93f3-1f0f3a1d2e4c_0001");
  for (int i = 0; i < 200; ++i) AddDevices(AddContainer(answer, "a", "p" + std::to_string(i), "c"), "a/b", ids);
  ASSERT_GT(answer.ByteSizeLong(), 8U << 20) << "more than gRPC takes when it is not told otherwise";
  const kube::testing::TempDir root;
  const Lister kubelet(root.path("kubelet.sock"), answer);
  PodResources resources(root.path("kubelet.sock"));
  const auto held = resources.List();
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(held->size(), 200U);
}

TEST(PodResources, IsUnavailableWithoutAKubeletAndAnswersAsSoonAsItIsBack) {
  const kube::testing::TempDir root;
  const std::string socket = root.path("kubelet.sock");
  PodResources resources(socket);
  v1::ListPodResourcesResponse answer;
  AddDevices(AddContainer(answer, "a", "b", "c"), "a/b", {"1"});
  for (int i = 0; i < 20; ++i) {
    for (int j = 0; j < 5; ++j) {  // Each failure would make gRPC wait longer before it connects.
      const auto failed = resources.List();
      ASSERT_FALSE(failed);
      EXPECT_EQ(failed.error().code(), ErrorCode::kUnavailable) << failed.error().message();
    }
    const Lister kubelet(socket, answer);
    const auto held = resources.List();
    ASSERT_TRUE(held) << "restart " << i << ": " << held.error().message();
    EXPECT_EQ(held->size(), 1U);
  }
}

TEST(PodResources, IsUnavailableWhenTheKubeletDoesNotAnswerInTime) {
  const kube::testing::TempDir root;
  const Lister kubelet(root.path("kubelet.sock"), {}, true);
  PodResources resources(root.path("kubelet.sock"), std::chrono::milliseconds(100));
  const auto failed = resources.List();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace grus

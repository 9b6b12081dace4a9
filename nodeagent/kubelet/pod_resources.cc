// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/pod_resources.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <podresources/v1/api.grpc.pb.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <tuple>
#include <utility>

#include "nodeagent/kubelet/grpc_status.h"

namespace grus {

namespace {

constexpr int kLargestAnswer = 64 << 20;  // A thousand pods with a thousand ids each.

HeldDevices HeldBy(const v1::PodResources& pod, const v1::ContainerResources& container) {
  HeldDevices held{pod.namespace_(), pod.name(), container.name()};
  // One resource may come in several parts, one for each NUMA node.
  for (const v1::ContainerDevices& part : container.devices()) {
    auto& ids = held.ids[part.resource_name()];
    ids.insert(ids.end(), part.device_ids().begin(), part.device_ids().end());
  }
  for (auto& [resource, ids] : held.ids) std::ranges::sort(ids);
  for (const v1::DynamicResource& claim : container.dynamic_resources()) {
    for (const v1::ClaimResource& device : claim.claim_resources()) {
      for (const v1::CDIDevice& added : device.cdi_devices()) held.cdi_ids.push_back(added.name());
    }
  }
  std::ranges::sort(held.cdi_ids);
  return held;
}

}  // namespace

// A channel, made anew after each failure: one that has failed waits before it connects again, by now in vain.
class PodResources::Connection {
 public:
  explicit Connection(std::string socket) : socket_(std::move(socket)) {}

  std::shared_ptr<grpc::Channel> Get() {
    std::lock_guard lock(mutex_);
    if (!channel_) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetMaxReceiveMessageSize(kLargestAnswer);
      channel_ = grpc::CreateCustomChannel("unix:" + socket_, grpc::InsecureChannelCredentials(), arguments);
    }
    return channel_;
  }
  void Drop(const std::shared_ptr<grpc::Channel>& failed) {
    std::lock_guard lock(mutex_);
    if (channel_ == failed) channel_.reset();
  }

 private:
  const std::string socket_;
  std::mutex mutex_;  // Guards what follows.
  std::shared_ptr<grpc::Channel> channel_;
};

PodResources::PodResources(std::string socket, kube::Duration limit)
    : limit_(limit), connection_(std::make_unique<Connection>(std::move(socket))) {
  SilenceGrpc();
}
PodResources::~PodResources() = default;

kube::Result<std::vector<HeldDevices>> PodResources::List() {
  const std::shared_ptr<grpc::Channel> channel = connection_->Get();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + limit_);
  v1::ListPodResourcesResponse response;
  const grpc::Status status = v1::PodResourcesLister::NewStub(channel)->List(&context, {}, &response);
  if (!status.ok()) {
    connection_->Drop(channel);
    return FromGrpc(status, "ask the kubelet who holds devices");
  }
  std::vector<HeldDevices> all;
  for (const v1::PodResources& pod : response.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) all.push_back(HeldBy(pod, container));
  }
  std::ranges::sort(all, {}, [](const HeldDevices& held) { return std::tie(held.ns, held.pod, held.container); });
  return all;
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/plugin_server.h"

#include <deviceplugin/v1beta1/api.grpc.pb.h>

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "clientlib/base/clock.h"
#include "nodeagent/kubelet/grpc_status.h"
#include "nodeagent/kubelet/served_socket.h"

namespace grus {
namespace {

using grpc::ServerContext;
using kube::Result;

// A watch of a kubelet that died holds up its registration anew.
constexpr kube::Duration kLookForEnd = std::chrono::milliseconds(500);

template <typename Ids>
std::vector<std::string> TextsOf(const Ids& ids) {
  return {ids.begin(), ids.end()};
}

v1beta1::ListAndWatchResponse ListOf(const std::vector<PluginDevice>& devices) {
  v1beta1::ListAndWatchResponse list;
  list.mutable_devices()->Reserve(static_cast<int>(devices.size()));
  for (const PluginDevice& device : devices) {
    v1beta1::Device& listed = *list.add_devices();
    listed.set_id(device.id);
    listed.set_health(device.is_healthy ? "Healthy" : "Unhealthy");
  }
  return list;
}

void Fill(const ContainerSetup& setup, v1beta1::ContainerAllocateResponse& answer) {
  for (const auto& [name, value] : setup.environment) (*answer.mutable_envs())[name] = value;
  for (const PluginMount& mount : setup.mounts) {
    v1beta1::Mount& added = *answer.add_mounts();
    added.set_host_path(mount.host_path);
    added.set_container_path(mount.container_path);
    added.set_read_only(mount.is_read_only);
  }
  for (const std::string& path : setup.device_paths) {
    v1beta1::DeviceSpec& added = *answer.add_devices();
    added.set_host_path(path);
    added.set_container_path(path);
    added.set_permissions("rw");
  }
}

class Service final : public v1beta1::DevicePlugin::Service {
 public:
  Service(DevicePlugin& plugin, DeviceChanges& changes, std::function<void()> watch_ended)
      : plugin_(plugin), changes_(changes), watch_ended_(std::move(watch_ended)) {}

  void EndWatches() {
    if (!is_ending_.exchange(true)) changes_.Add();  // Wakes them.
  }
  int open_watches() const { return open_watches_; }
  int total_watches() const { return total_watches_; }

  grpc::Status GetDevicePluginOptions(ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* options) override {
    options->set_pre_start_required(true);
    options->set_get_preferred_allocation_available(true);
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    ++open_watches_;
    ++total_watches_;
    Watch(*context, *writer);
    --open_watches_;
    if (!is_ending_) watch_ended_();
    return grpc::Status::OK;
  }

  grpc::Status GetPreferredAllocation(ServerContext*, const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override {
    for (const auto& asked : request->container_requests()) {
      const auto preferred = plugin_.Prefer(TextsOf(asked.available_deviceids()),
                                            TextsOf(asked.must_include_deviceids()), asked.allocation_size());
      if (!preferred) return ToGrpc(preferred.error());
      auto& ids = *response->add_container_responses()->mutable_deviceids();
      ids.Assign(preferred->begin(), preferred->end());
    }
    return grpc::Status::OK;
  }

  grpc::Status Allocate(ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override {
    for (const auto& asked : request->container_requests()) {
      const Result<ContainerSetup> setup = plugin_.Allocate(TextsOf(asked.devices_ids()));
      if (!setup) return ToGrpc(setup.error());
      Fill(*setup, *response->add_container_responses());
    }
    return grpc::Status::OK;
  }

  grpc::Status PreStartContainer(ServerContext*, const v1beta1::PreStartContainerRequest* request,
                                 v1beta1::PreStartContainerResponse*) override {
    const kube::Status may_start = plugin_.PreStart(TextsOf(request->devices_ids()));
    return may_start ? grpc::Status::OK : ToGrpc(may_start.error());
  }

 private:
  // Until the kubelet has gone or the server ends.
  void Watch(const ServerContext& context, grpc::ServerWriter<v1beta1::ListAndWatchResponse>& writer) {
    while (!is_ending_) {
      const std::uint64_t listed = changes_.count();
      if (!writer.Write(ListOf(plugin_.Devices()))) return;
      while (changes_.count() == listed) {
        if (is_ending_ || context.IsCancelled()) return;
        changes_.AwaitAfter(listed, kLookForEnd);
      }
    }
  }

  DevicePlugin& plugin_;
  DeviceChanges& changes_;
  const std::function<void()> watch_ended_;
  std::atomic<bool> is_ending_ = false;
  std::atomic<int> open_watches_ = 0, total_watches_ = 0;
};

class SocketServer final : public PluginServer {
 public:
  SocketServer(DevicePlugin& plugin, DeviceChanges& changes, std::function<void()> watch_ended)
      : service_(plugin, changes, std::move(watch_ended)) {}
  ~SocketServer() override {
    Withdraw();
    socket_.End();
  }

  kube::Status Serve(const std::string& path) { return socket_.Serve(path, {&service_}); }
  void Withdraw() override {
    socket_.Withdraw();
    service_.EndWatches();
  }
  bool IsInPlace() const override { return socket_.IsInPlace(); }
  int open_watches() const override { return service_.open_watches(); }
  int total_watches() const override { return service_.total_watches(); }

 private:
  Service service_;
  ServedSocket socket_;
};

}  // namespace

Result<std::unique_ptr<PluginServer>> PluginServer::Start(DevicePlugin& plugin, const std::string& path,
                                                          DeviceChanges& changes, std::function<void()> watch_ended) {
  auto server = std::make_unique<SocketServer>(plugin, changes, std::move(watch_ended));
  if (kube::Status served = server->Serve(path); !served) return std::move(served).error();
  return std::unique_ptr<PluginServer>(std::move(server));
}

}  // namespace grus

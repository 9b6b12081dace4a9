// SPDX-License-Identifier: Apache-2.0
// The kubelet as device plugins know it, for what its own device manager does not show: it takes registrations, watches
// devices, and does what a test wants done wrong. Thread-safe.
#pragma once

#include <deviceplugin/v1beta1/api.grpc.pb.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace grus::testing {

inline std::shared_ptr<grpc::Channel> ChannelTo(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

class FakeKubelet final : private v1beta1::Registration::Service {
 public:
  struct Plugin {
    std::vector<v1beta1::RegisterRequest> registrations = {};
    std::vector<v1beta1::ListAndWatchResponse> lists = {};
    int watches_ended = 0;
  };

  // As the kubelet does, it first removes all sockets of the folder.
  explicit FakeKubelet(std::string folder, bool watches = true) : folder_(std::move(folder)), watches_(watches) {
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.is_socket()) std::filesystem::remove(entry.path());
    }
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + folder_ + "/kubelet.sock", grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    if (!server_) throw std::runtime_error("cannot listen in " + folder_);
  }
  ~FakeKubelet() override {
    DropWatches();
    server_->Shutdown();
    std::vector<std::jthread> watchers;
    {
      std::lock_guard lock(mutex_);
      watchers.swap(watchers_);
    }
  }

  void Refuse(std::optional<grpc::Status> refusal) {
    std::lock_guard lock(mutex_);
    refusal_ = std::move(refusal);
  }
  // Ends the watches of all devices, and tells nobody.
  void DropWatches() {
    std::lock_guard lock(mutex_);
    for (const auto& context : contexts_) context->TryCancel();
  }

  // Waits until what is known of a plugin fulfils `condition`; false: it does not come to that.
  bool Await(const std::string& resource, const std::function<bool(const Plugin&)>& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return condition(plugins_[resource]); });
  }
  bool AwaitLists(const std::string& resource, std::size_t count) {
    return Await(resource, [count](const Plugin& plugin) { return plugin.lists.size() >= count; });
  }
  Plugin plugin(const std::string& resource) {
    std::lock_guard lock(mutex_);
    return plugins_[resource];
  }
  // REQUIRES: it has registered.
  std::unique_ptr<v1beta1::DevicePlugin::Stub> Dial(const std::string& resource) {
    return v1beta1::DevicePlugin::NewStub(ChannelTo(folder_ + "/" + plugin(resource).registrations.back().endpoint()));
  }

 private:
  grpc::Status Register(grpc::ServerContext*, const v1beta1::RegisterRequest* request, v1beta1::Empty*) override {
    std::unique_lock lock(mutex_);
    Plugin& plugin = plugins_[request->resource_name()];
    plugin.registrations.push_back(*request);
    changed_.notify_all();
    if (refusal_) return *refusal_;
    lock.unlock();
    auto stub = v1beta1::DevicePlugin::NewStub(ChannelTo(folder_ + "/" + request->endpoint()));
    grpc::ClientContext context;
    v1beta1::DevicePluginOptions options;
    if (const grpc::Status asked = stub->GetDevicePluginOptions(&context, {}, &options); !asked.ok()) return asked;
    lock.lock();
    if (!watches_) return grpc::Status::OK;
    auto watch = std::make_shared<grpc::ClientContext>();
    contexts_.push_back(watch);
    watchers_.emplace_back(
        [this, watch, resource = request->resource_name(), stub = std::move(stub)] { Watch(resource, *stub, *watch); });
    return grpc::Status::OK;
  }

  void Watch(const std::string& resource, v1beta1::DevicePlugin::Stub& stub, grpc::ClientContext& context) {
    const auto reader = stub.ListAndWatch(&context, {});
    v1beta1::ListAndWatchResponse list;
    while (reader->Read(&list)) {
      std::lock_guard lock(mutex_);
      plugins_[resource].lists.push_back(list);
      changed_.notify_all();
    }
    reader->Finish();
    std::lock_guard lock(mutex_);
    ++plugins_[resource].watches_ended;
    changed_.notify_all();
  }

  const std::string folder_;
  const bool watches_;
  std::unique_ptr<grpc::Server> server_;
  std::mutex mutex_;  // Guards what follows.
  std::condition_variable changed_;
  std::map<std::string, Plugin> plugins_;
  std::optional<grpc::Status> refusal_;
  std::vector<std::shared_ptr<grpc::ClientContext>> contexts_;
  std::vector<std::jthread> watchers_;
};

}  // namespace grus::testing

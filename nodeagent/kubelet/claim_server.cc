// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/claim_server.h"

#include <dra/v1/api.grpc.pb.h>
#include <pluginregistration/v1/api.grpc.pb.h>

#include <utility>

#include "nodeagent/kubelet/grpc_status.h"
#include "nodeagent/kubelet/served_socket.h"

namespace grus {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;
using grpc::ServerContext;
using kube::Result;

ClaimName NameOf(const dra::Claim& claim) { return {claim.namespace_(), claim.name(), claim.uid()}; }

class Registration final : public pluginregistration::Registration::Service {
 public:
  Registration(std::string driver, ClaimServer::OnStatus on_status)
      : driver_(std::move(driver)), on_status_(std::move(on_status)) {}

  // Without an endpoint, the kubelet asks for the rest at this socket, too: by the path that it has here, which the
  // agent's container may see elsewhere.
  grpc::Status GetInfo(ServerContext*, const pluginregistration::InfoRequest*,
                       pluginregistration::PluginInfo* info) override {
    info->set_type("DRAPlugin");
    info->set_name(driver_);
    info->add_supported_versions("v1.DRAPlugin");
    return grpc::Status::OK;
  }

  grpc::Status NotifyRegistrationStatus(ServerContext*, const pluginregistration::RegistrationStatus* status,
                                        pluginregistration::RegistrationStatusResponse*) override {
    on_status_(status->plugin_registered() ? kube::Status()
                                           : kube::Error(kube::ErrorCode::kUnavailable, status->error()));
    return grpc::Status::OK;
  }

 private:
  const std::string driver_;
  const ClaimServer::OnStatus on_status_;
};

class Claims final : public dra::DRAPlugin::Service {
 public:
  explicit Claims(ClaimDriver& driver) : driver_(driver) {}

  grpc::Status NodePrepareResources(ServerContext*, const dra::NodePrepareResourcesRequest* request,
                                    dra::NodePrepareResourcesResponse* response) override {
    for (const dra::Claim& claim : request->claims()) {
      dra::NodePrepareResourceResponse& answer = (*response->mutable_claims())[claim.uid()];
      const Result<std::vector<ReadyDevice>> ready = driver_.Prepare(NameOf(claim));
      if (!ready) {
        answer.set_error(ready.error().message());
        continue;
      }
      for (const ReadyDevice& device : *ready) {
        dra::Device& added = *answer.add_devices();
        added.add_request_names(device.request);
        added.set_pool_name(device.pool);
        added.set_device_name(device.device);
        for (const std::string& id : device.cdi_ids) added.add_cdi_device_ids(id);
        if (!device.share_id.empty()) added.set_share_id(device.share_id);
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status NodeUnprepareResources(ServerContext*, const dra::NodeUnprepareResourcesRequest* request,
                                      dra::NodeUnprepareResourcesResponse* response) override {
    for (const dra::Claim& claim : request->claims()) {
      dra::NodeUnprepareResourceResponse& answer = (*response->mutable_claims())[claim.uid()];
      if (const kube::Status done = driver_.Unprepare(NameOf(claim)); !done) answer.set_error(done.error().message());
    }
    return grpc::Status::OK;
  }

 private:
  ClaimDriver& driver_;
};

class SocketServer final : public ClaimServer {
 public:
  SocketServer(ClaimDriver& driver, OnStatus on_status)
      : registration_(driver.name(), std::move(on_status)), claims_(driver) {}
  kube::Status Serve(const std::string& path) { return socket_.Serve(path, {&registration_, &claims_}); }
  bool IsInPlace() const override { return socket_.IsInPlace(); }

 private:
  Registration registration_;
  Claims claims_;
  ServedSocket socket_;  // Ends first.
};

}  // namespace

Result<std::unique_ptr<ClaimServer>> ClaimServer::Start(ClaimDriver& driver, const std::string& path,
                                                        OnStatus on_status) {
  auto server = std::make_unique<SocketServer>(driver, std::move(on_status));
  if (kube::Status served = server->Serve(path); !served) return std::move(served).error();
  return std::unique_ptr<ClaimServer>(std::move(server));
}

}  // namespace grus

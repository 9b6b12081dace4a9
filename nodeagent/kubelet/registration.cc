// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/registration.h"

#include <deviceplugin/v1beta1/api.grpc.pb.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>

#include "nodeagent/kubelet/grpc_status.h"

namespace grus {

namespace {

// The kubelet gives itself ten seconds to connect to the plugin.
constexpr std::chrono::seconds kDeadline(12);

}  // namespace

kube::Status RegisterPlugin(const std::string& folder, const std::string& socket_name, const std::string& resource,
                            const std::stop_token& stop) {
  grpc::ChannelArguments arguments;
  // Otherwise a channel begins with the delays that failures of earlier ones have earned.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto kubelet = v1beta1::Registration::NewStub(grpc::CreateCustomChannel(
      "unix:" + folder + "/" + kKubeletSocketName, grpc::InsecureChannelCredentials(), arguments));
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(socket_name);
  request.set_resource_name(resource);
  request.mutable_options()->set_pre_start_required(true);
  request.mutable_options()->set_get_preferred_allocation_available(true);

  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  const std::stop_callback on_stop(stop, [&] { context.TryCancel(); });
  v1beta1::Empty answer;
  const grpc::Status status = kubelet->Register(&context, request, &answer);
  if (status.ok()) return {};
  return FromGrpc(status, "register " + resource + " with the kubelet");
}

}  // namespace grus

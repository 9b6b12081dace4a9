// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/kubelet/claim_host.h"

#include <dra/v1/api.grpc.pb.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <pluginregistration/v1/api.grpc.pb.h>

#include <filesystem>
#include <map>

#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

namespace dra = k8s::io::kubelet::pkg::apis::dra::v1;
using ::testing::HasSubstr;

// Claims whose name is "bad" are refused.
class ScriptedClaims final : public ClaimDriver {
 public:
  std::string name() const override { return "gpu.example.com"; }
  kube::Result<std::vector<ReadyDevice>> Prepare(const ClaimName& claim) override {
    if (claim.name == "bad") return kube::Error(kube::ErrorCode::kNotFound, "no such claim");
    prepared[claim.uid] = claim;
    return std::vector<ReadyDevice>{{.request = "gpu",
                                     .pool = "node-1",
                                     .device = "gpu-0",
                                     .share_id = claim.name == "shared" ? "s-1" : "",
                                     .cdi_ids = {"example.com/gpu=" + claim.uid}}};
  }
  kube::Status Unprepare(const ClaimName& claim) override {
    if (claim.name == "bad") return kube::Error(kube::ErrorCode::kUnavailable, "the disk is full");
    prepared.erase(claim.uid);
    return {};
  }
  std::map<std::string, ClaimName> prepared = {};
};

class ClaimHostTest : public ::testing::Test {
 protected:
  ClaimHostTest() : running_(clock_.Spawn([this](const std::stop_token& stop) { host_.Run(stop); })) {}

  // As the kubelet dials, which waits until the socket answers.
  std::shared_ptr<grpc::Channel> Dial() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
    return grpc::CreateCustomChannel("unix:" + host_.socket(), grpc::InsecureChannelCredentials(), arguments);
  }
  template <typename Stub, typename Request, typename Response>
  void Call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
            const Request& request, Response& response) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    const grpc::Status status = (stub.*method)(&context, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  void Notify(bool is_taken, const std::string& error = "") {
    auto stub = pluginregistration::Registration::NewStub(Dial());
    pluginregistration::RegistrationStatus status;
    status.set_plugin_registered(is_taken);
    status.set_error(error);
    pluginregistration::RegistrationStatusResponse answer;
    Call(*stub, &pluginregistration::Registration::Stub::NotifyRegistrationStatus, status, answer);
  }

  const kube::SystemClock clock_;
  const kube::Log log_;
  const kube::testing::TempDir folder_;
  ScriptedClaims claims_;
  ClaimHost host_{claims_, folder_.path(), clock_, log_};
  const kube::Thread running_;
};

dra::Claim ClaimOf(const std::string& name, const std::string& uid) {
  dra::Claim claim;
  claim.set_namespace_("team-a");
  claim.set_name(name);
  claim.set_uid(uid);
  return claim;
}

TEST_F(ClaimHostTest, TellsTheKubeletWhoseSocketItIsAndThatClaimsAreServedThere) {
  auto stub = pluginregistration::Registration::NewStub(Dial());
  pluginregistration::PluginInfo info;
  Call(*stub, &pluginregistration::Registration::Stub::GetInfo, pluginregistration::InfoRequest(), info);

  EXPECT_EQ(info.type(), "DRAPlugin");
  EXPECT_EQ(info.name(), "gpu.example.com");
  EXPECT_EQ(info.endpoint(), "");
  ASSERT_EQ(info.supported_versions_size(), 1);
  EXPECT_EQ(info.supported_versions(0), "v1.DRAPlugin");
}

TEST_F(ClaimHostTest, LeavesNothingInTheFolderButItsSocket) {
  Notify(true);

  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path(), host_.socket());
  }
}

TEST_F(ClaimHostTest, IsRegisteredOnceTheKubeletSaysSoAndUntilItSaysOtherwise) {
  EXPECT_FALSE(host_.is_registered());
  Notify(true);
  EXPECT_TRUE(host_.is_registered());
  ::testing::internal::CaptureStderr();
  Notify(false, "version v1.DRAPlugin is not known");

  EXPECT_FALSE(host_.is_registered());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("version v1.DRAPlugin is not known"));
}

TEST_F(ClaimHostTest, AnswersForEachClaimWithItsDevicesOrWhatIsWrongWithIt) {
  auto stub = dra::DRAPlugin::NewStub(Dial());
  dra::NodePrepareResourcesRequest request;
  *request.add_claims() = ClaimOf("good", "u-1");
  *request.add_claims() = ClaimOf("bad", "u-2");
  *request.add_claims() = ClaimOf("shared", "u-3");
  dra::NodePrepareResourcesResponse response;
  Call(*stub, &dra::DRAPlugin::Stub::NodePrepareResources, request, response);

  ASSERT_EQ(response.claims_size(), 3);
  EXPECT_EQ(claims_.prepared["u-1"], (ClaimName{"team-a", "good", "u-1"}));
  const dra::NodePrepareResourceResponse &good = response.claims().at("u-1"), &shared = response.claims().at("u-3");
  ASSERT_EQ(good.devices_size(), 1);
  EXPECT_EQ(good.error(), "");
  EXPECT_EQ(good.devices(0).request_names(0), "gpu");
  EXPECT_EQ(good.devices(0).pool_name(), "node-1");
  EXPECT_EQ(good.devices(0).device_name(), "gpu-0");
  EXPECT_EQ(good.devices(0).cdi_device_ids(0), "example.com/gpu=u-1");
  EXPECT_FALSE(good.devices(0).has_share_id());
  EXPECT_EQ(shared.devices(0).share_id(), "s-1");
  EXPECT_EQ(response.claims().at("u-2").error(), "no such claim");
}

TEST_F(ClaimHostTest, TakesBackEachClaimOrSaysWhyNot) {
  claims_.prepared["u-1"] = {"team-a", "good", "u-1"};
  auto stub = dra::DRAPlugin::NewStub(Dial());
  dra::NodeUnprepareResourcesRequest request;
  *request.add_claims() = ClaimOf("good", "u-1");
  *request.add_claims() = ClaimOf("bad", "u-2");
  dra::NodeUnprepareResourcesResponse response;
  Call(*stub, &dra::DRAPlugin::Stub::NodeUnprepareResources, request, response);

  ASSERT_EQ(response.claims_size(), 2);
  EXPECT_EQ(response.claims().at("u-1").error(), "");
  EXPECT_EQ(response.claims().at("u-2").error(), "the disk is full");
  EXPECT_TRUE(claims_.prepared.empty());
}

TEST_F(ClaimHostTest, ASocketThatIsRemovedComesBack) {
  Notify(true);
  std::filesystem::remove(host_.socket());
  Notify(true);  // Waits for it.

  EXPECT_TRUE(std::filesystem::is_socket(host_.socket()));
}

}  // namespace
}  // namespace grus

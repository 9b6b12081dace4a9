// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/agent/node_sharing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "clientlib/base/wait.h"
#include "clientlib/testing/api_server/fake_api_server.h"
#include "crds/types/all_crds.h"
#include "crds/types/sharing_names.h"
#include "nodeagent/dra/gpu_slice.h"
#include "tests/kit/must.h"
#include "tests/kit/objects.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/gpu_states.h"

namespace grus {
namespace {

using kube::Json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A node of two GPUs, without a kubelet. Each look reads the label.
class NodeSharingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    kit::Must(
        server_.Create("nodes", kit::FromText(R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"node-1"}})")));
  }
  void SetMode(const Json& mode) {
    Json node = *server_.Get("nodes", {"", "node-1"});
    node["metadata"]["labels"][api::kSharingModeLabel] = mode;
    kit::Must(server_.Update("nodes", std::move(node)));
  }
  void SetEnforcement(const Json& word) {
    Json node = *server_.Get("nodes", {"", "node-1"});
    node["metadata"]["labels"][api::kEnforcementLabel] = word;
    kit::Must(server_.Update("nodes", std::move(node)));
  }
  // So many looks; what is logged.
  std::string Look(int times) {
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < times; ++i) sharing_.LookOnce();
    return ::testing::internal::GetCapturedStderr();
  }
  std::string Inventory() const { return sharing_.NodeAnnotations().at(api::kGpuInventoryAnnotation); }

  const kube::SystemClock clock_;
  const kube::Log log_;
  const kube::testing::TempDir folder_;
  kube::testing::FakeApiServer server_{clock_};
  kube::Client client_{server_, nullptr, clock_};
  NodePods pods_{client_, "node-1", clock_, log_};
  const std::shared_ptr<const NodeSample> look_ =
      std::make_shared<const NodeSample>(testing::LookAt({testing::WorkingGpu(0), testing::WorkingGpu(1)}));
  NodeSharing sharing_{client_,
                       [this] { return look_; },
                       pods_,
                       {.node_name = "node-1",
                        .read_again = kube::Duration::zero(),
                        .plugin_folder = folder_.path(),
                        .pod_resources_socket = folder_.path("none.sock"),
                        .plugin_registry = folder_.path(),
                        .cdi_folder = folder_.path("cdi"),
                        .mps = {.folder = folder_.path("mps")},
                        .cuda = {.folder = folder_.path("cuda"), .shares = folder_.path("shares")}},
                       clock_,
                       log_};
};

TEST_F(NodeSharingTest, BeforeTheLabelIsReadNothingIsSaidOfTheNode) {
  EXPECT_THAT(sharing_.NodeAnnotations(), IsEmpty());
}

TEST_F(NodeSharingTest, WithoutTheLabelNothingIsOfferedAndTheOriginalsAnnotationsAreLeftAlone) {
  sharing_.LookOnce();

  EXPECT_EQ(sharing_.NodeAnnotations(), (AnnotationTexts{{api::kGpuInventoryAnnotation, ""}}));
}

TEST_F(NodeSharingTest, TheLabelSaysInWhichWayAndAnotherIsFollowed) {
  SetMode("milli");
  sharing_.LookOnce();
  EXPECT_THAT(Inventory(), HasSubstr(R"("uuid":"GPU-1","memoryMiB":81420,"milli":1000,"mode":"milli")"));

  SetMode("alnair");
  sharing_.LookOnce();
  EXPECT_THAT(Inventory(), HasSubstr(R"("mode":"alnair")"));
  EXPECT_EQ(sharing_.NodeAnnotations().at(kVirtualGpuCountAnnotation), "158");  // 79 GiB of each.

  SetMode(Json());
  sharing_.LookOnce();
  EXPECT_THAT(Inventory(), IsEmpty());
  EXPECT_THAT(sharing_.NodeAnnotations().at(kVirtualGpuCountAnnotation), IsEmpty());
}

TEST_F(NodeSharingTest, AnUnknownLabelIsToldOnceAndNothingIsOffered) {
  SetMode("milli");
  sharing_.LookOnce();
  SetMode("halves");
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) sharing_.LookOnce();
  const std::string told = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(told, HasSubstr(R"(is \"halves\": expected milli, alnair, gpushare or dra)"));
  EXPECT_EQ(told.find("halves"), told.rfind("halves"));
  EXPECT_THAT(Inventory(), IsEmpty());
}

TEST_F(NodeSharingTest, AnUnknownPlacementIsToldOnceAndPartsAreOffered) {
  SetMode("milli");
  Json node = *server_.Get("nodes", {"", "node-1"});
  node["metadata"]["labels"][api::kPartPlacementKey] = "sideways";
  kit::Must(server_.Update("nodes", std::move(node)));
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) sharing_.LookOnce();
  const std::string told = ::testing::internal::GetCapturedStderr();

  EXPECT_THAT(told, HasSubstr(R"(is \"sideways\": expected pack or spread)"));
  EXPECT_EQ(told.find("sideways"), told.rfind("sideways"));
  EXPECT_THAT(Inventory(), HasSubstr("GPU-1"));
}

TEST_F(NodeSharingTest, AskedForMpsNoGpuIsOfferedAsHealthyBeforeItsDaemonIsUp) {
  SetEnforcement("mps");
  for (const char* mode : {"milli", "alnair"}) {
    SetMode(mode);
    EXPECT_THAT(Look(1), Not(HasSubstr("nothing holds containers")));
    EXPECT_THAT(Inventory(), HasSubstr(R"("healthy":false)")) << mode;
  }
}

TEST_F(NodeSharingTest, WhereThereIsNoMpsThatIsToldOnceAndPartsAreOfferedWithoutIt) {
  SetEnforcement("mps");
  for (const char* mode : {"gpushare", "dra"}) {
    SetMode(mode);
    const std::string told = Look(3);
    EXPECT_THAT(told, HasSubstr("MPS is not available in the mode " + std::string(mode)));
    EXPECT_EQ(told.find("MPS is not"), told.rfind("MPS is not"));
    EXPECT_THAT(Inventory(), AllOf(HasSubstr("GPU-1"), Not(HasSubstr("healthy")))) << mode;
  }
  SetMode(Json());
  EXPECT_THAT(Look(1), Not(HasSubstr("MPS")));
}

TEST_F(NodeSharingTest, AskedForCooperativeLimitsNoGpuIsOfferedAsHealthyBeforeTheirLibraryIsThere) {
  SetEnforcement("cooperative");
  for (const char* mode : {"milli", "alnair", "gpushare"}) {
    SetMode(mode);
    EXPECT_THAT(Look(1), Not(HasSubstr("nothing holds containers")));
    EXPECT_THAT(Inventory(), HasSubstr(R"("healthy":false)")) << mode;
  }
  SetEnforcement("none");
  SetMode("milli");
  Look(1);
  EXPECT_THAT(Inventory(), AllOf(HasSubstr("GPU-1"), Not(HasSubstr("healthy"))));
}

TEST_F(NodeSharingTest, ForClaimsThereAreNoCooperativeLimitsYetAndThatIsToldOnce) {
  SetEnforcement("cooperative");
  SetMode("dra");
  const std::string told = Look(3);
  EXPECT_THAT(told, HasSubstr("cooperative limits are not available yet in the mode dra"));
  EXPECT_EQ(told.find("not available yet"), told.rfind("not available yet"));
  EXPECT_THAT(Inventory(), AllOf(HasSubstr("GPU-1"), Not(HasSubstr("healthy"))));
}

TEST_F(NodeSharingTest, AnUnknownEnforcementIsToldOnceAndTakenAsNone) {
  SetMode("milli");
  SetEnforcement("Strict");
  const std::string told = Look(3);

  EXPECT_THAT(told, HasSubstr(R"(is \"Strict\": expected cooperative, mps or none)"));
  EXPECT_EQ(told.find("Strict"), told.rfind("Strict"));
  EXPECT_THAT(Inventory(), Not(HasSubstr("healthy")));
}

// Whatever the enforcement is now: a container that was given its part cooperatively may start again.
TEST_F(NodeSharingTest, WhatTheNodePoolAllowsBesidePartsIsReadWithTheLabel) {
  EXPECT_THAT(sharing_.paging().problem, Not(IsEmpty())) << "not read yet";
  SetMode("milli");
  Look(1);
  EXPECT_EQ(sharing_.paging(), PagingAllowance()) << "grus-manager is not installed";
  for (const kube::CrdInfo& crd : api::AllCrds()) {
    kit::Must(server_.Create("customresourcedefinitions.apiextensions.k8s.io", kube::MakeCrd(crd)));
  }
  Json node = *server_.Get("nodes", {"", "node-1"});
  node["metadata"]["labels"]["gpus"] = "a100";
  kit::Must(server_.Update("nodes", std::move(node)));
  const char* const pool = R"({"apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"NodePool",
      "metadata":{"name":"train"},"spec":{"nodeSelector":{"gpus":"a100"},"pagedMemoryPercent":50}})";
  kit::Must(server_.Create("nodepools.ai.centauruscloud.io", kit::FromText(pool)));
  Look(1);
  EXPECT_EQ(sharing_.paging(), (PagingAllowance{.pool = "train", .percent = 50}));
  ASSERT_TRUE(server_.Delete("nodepools.ai.centauruscloud.io", {"", "train"}));
  Look(1);
  EXPECT_EQ(sharing_.paging(), PagingAllowance());
}

TEST_F(NodeSharingTest, InTheModeOfClaimsTheInventorySaysSoAndTheKubeletFindsTheDriver) {
  SetMode("dra");
  sharing_.LookOnce();

  EXPECT_THAT(Inventory(), HasSubstr(R"("mode":"dra")"));
  const std::string socket = folder_.path("gpu.ai.centauruscloud.io-grus.sock");
  const kube::TimePoint until = clock_.Now() + std::chrono::seconds(60);
  while (!std::filesystem::exists(socket) && clock_.Now() < until)
    kube::WaitFor(clock_, std::chrono::milliseconds(1), {});
  EXPECT_TRUE(std::filesystem::is_socket(socket));

  SetMode("milli");
  sharing_.LookOnce();
  EXPECT_FALSE(std::filesystem::exists(socket));
}

TEST_F(NodeSharingTest, InAnotherModeTheSliceOfThisNodeGoesAndNoOther) {
  kit::Must(server_.Create("resourceslices.resource.k8s.io", SliceOf("node-1", "u", Json::MakeArray())));
  kit::Must(server_.Create("resourceslices.resource.k8s.io", SliceOf("node-2", "u", Json::MakeArray())));
  SetMode("milli");
  sharing_.LookOnce();

  EXPECT_FALSE(server_.Get("resourceslices.resource.k8s.io", {"", SliceNameOf("node-1")}));
  EXPECT_TRUE(server_.Get("resourceslices.resource.k8s.io", {"", SliceNameOf("node-2")}));
}

TEST_F(NodeSharingTest, ANodeThatCannotBeReadGoesOnAsBefore) {
  SetMode("milli");
  sharing_.LookOnce();
  ASSERT_TRUE(server_.Delete("nodes", {"", "node-1"}));
  ::testing::internal::CaptureStderr();
  sharing_.LookOnce();

  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("in which way this node shares its GPUs"));
  EXPECT_THAT(Inventory(), Not(IsEmpty()));
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/dra/gpu_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "clientlib/testing/api_server/fake_api_server.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/dra/claim_texts.h"

namespace grus {
namespace {

using kube::ErrorCode;
using kube::Json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ResultOf;

// The API server, which a test takes away.
class ServerDoor final : public kube::Transport {
 public:
  explicit ServerDoor(kube::Transport& server) : server_(server) {}
  kube::Result<kube::HttpResponse> Send(const kube::HttpRequest& request, std::stop_token stop) override {
    if (!is_open) return kube::Error(ErrorCode::kInternal, "nobody answers");
    return server_.Send(request, std::move(stop));
  }
  kube::Result<kube::StreamResponse> Open(const kube::HttpRequest& request, std::stop_token stop) override {
    return server_.Open(request, std::move(stop));
  }
  bool is_open = true;

 private:
  kube::Transport& server_;
};

// Node "node-1" with "GPU-A0" and "GPU-A1", of 80 GiB.
class GpuClaimsTest : public ::testing::Test {
 protected:
  GpuClaimsTest() {
    kit::Must(server_.Create("namespaces", kit::FromText(R"({"metadata":{"name":"team-a"}})")));
    Begin();
  }
  void Begin() {  // Or again, as after the agent's death.
    prepared_.emplace(folder_.path());
    claims_.emplace(
        client_, *prepared_,
        GpuClaims::Node{
            .name = "node-1", .gpus = [this] { return gpus_; }, .holders_otherwise = [this] { return holders_; }},
        log_);
    claims_->Accept(true);
  }
  ClaimName Add(const std::string& name, std::vector<Json> results) {
    Json claim = testing::ClaimJson(name, std::move(results));
    const Json status = claim["status"];
    kit::Must(server_.Create("resourceclaims.resource.k8s.io", claim));
    Json made = *server_.Get("resourceclaims.resource.k8s.io", {"team-a", name});
    made["status"] = status;
    kit::Must(server_.Update("resourceclaims.resource.k8s.io", made, "status"));
    return {"team-a", name, *made.At({"metadata", "uid"})->AsString()};
  }
  void Remove(const ClaimName& claim) {
    ASSERT_TRUE(server_.Delete("resourceclaims.resource.k8s.io", {claim.ns, claim.name}));
  }
  std::string Refusal(const ClaimName& claim) {
    const auto prepared = claims_->Prepare(claim);
    return prepared ? "it is prepared" : prepared.error().message();
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      files.push_back(entry.path().filename());
    std::ranges::sort(files);
    return files;
  }
  std::vector<std::string> EnvironmentOf(const std::string& file, std::size_t device = 0) const {
    std::ostringstream text;
    text << std::ifstream(folder_.path(file)).rdbuf();
    const Json spec = kit::FromText(text.str());
    std::vector<std::string> lines;
    for (const Json& one : *(*spec.Find("devices")->AsArray())[device].At({"containerEdits", "env"})->AsArray()) {
      lines.push_back(*one.AsString());
    }
    return lines;
  }
  static std::string FileOf(const ClaimName& claim) { return "grus-claim-" + claim.uid + ".json"; }

  const kube::SystemClock clock_;
  const kube::Log log_;
  const kube::testing::TempDir folder_;
  kube::testing::FakeApiServer server_{clock_};
  ServerDoor door_{server_};
  kube::Client client_{door_, nullptr, clock_};
  std::vector<SharedGpu> gpus_ = testing::TwoGpus();
  std::map<std::string, std::string> holders_;
  std::optional<PreparedClaims> prepared_;
  std::optional<GpuClaims> claims_;
};

TEST_F(GpuClaimsTest, AClaimGetsWhatTheSchedulerHasAllocated) {
  const ClaimName claim = Add("part", {ResultOf("gpu-a1", "300", "30Gi")});
  const auto ready = kit::Must(claims_->Prepare(claim));

  EXPECT_THAT(ready, ElementsAre(ReadyDevice{.request = "gpu",
                                             .pool = "node-1",
                                             .device = "gpu-a1",
                                             .share_id = "share-of-300",
                                             .cdi_ids = {"ai.centauruscloud.io/gpu=" + claim.uid + "-gpu"}}));
  EXPECT_THAT(Files(), ElementsAre(FileOf(claim)));
  EXPECT_THAT(EnvironmentOf(FileOf(claim)),
              ElementsAre("NVIDIA_VISIBLE_DEVICES=GPU-A1", "GRUS_GPU_MILLI=300", "GRUS_GPU_MEMORY_MIB=30720"));
}

TEST_F(GpuClaimsTest, WithoutConsumedCapacityItIsTheWholeGpu) {
  const ClaimName claim = Add("whole", {ResultOf("gpu-a0")});
  kit::Must(claims_->Prepare(claim));

  EXPECT_THAT(EnvironmentOf(FileOf(claim)),
              ElementsAre("NVIDIA_VISIBLE_DEVICES=GPU-A0", "GRUS_GPU_MILLI=1000", "GRUS_GPU_MEMORY_MIB=81920"));
}

TEST_F(GpuClaimsTest, ARequestForTwoGpusListsBothAndAnotherRequestHasItsOwn) {
  const ClaimName claim = Add("two", {ResultOf("gpu-a0", "100", "1Gi"), ResultOf("gpu-a1", "200", "2Gi"),
                                      ResultOf("gpu-a0", "50", "512Mi", "small/sub")});
  const auto ready = kit::Must(claims_->Prepare(claim));

  ASSERT_EQ(ready.size(), 3U);
  EXPECT_THAT(ready[0].cdi_ids, ElementsAre("ai.centauruscloud.io/gpu=" + claim.uid + "-gpu"));
  EXPECT_THAT(ready[1].cdi_ids, IsEmpty());  // The first one says both.
  EXPECT_EQ(ready[2].request, "small");
  EXPECT_THAT(EnvironmentOf(FileOf(claim), 0), ElementsAre("NVIDIA_VISIBLE_DEVICES=GPU-A0,GPU-A1",
                                                           "GRUS_GPU_MILLI=100,200", "GRUS_GPU_MEMORY_MIB=1024,2048"));
  EXPECT_THAT(EnvironmentOf(FileOf(claim), 1),
              ElementsAre("NVIDIA_VISIBLE_DEVICES=GPU-A0", "GRUS_GPU_MILLI=50", "GRUS_GPU_MEMORY_MIB=512"));
}

TEST_F(GpuClaimsTest, PreparedAgainItAnswersTheSameAlsoByANewAgentOrWhileTheGpuIsSickOrTheServerAway) {
  const ClaimName claim = Add("part", {ResultOf("gpu-a1", "300", "30Gi")});
  const auto first = kit::Must(claims_->Prepare(claim));
  EXPECT_EQ(kit::Must(claims_->Prepare(claim)), first);

  Begin();
  EXPECT_EQ(kit::Must(claims_->Prepare(claim)), first);
  gpus_[1].is_healthy = false;
  EXPECT_EQ(kit::Must(claims_->Prepare(claim)), first);
  gpus_.clear();
  door_.is_open = false;
  claims_->Accept(false);
  EXPECT_EQ(kit::Must(claims_->Prepare(claim)), first);
}

TEST_F(GpuClaimsTest, TakenBackItsFileIsGoneAndOthersStay) {
  const ClaimName a = Add("a", {ResultOf("gpu-a0", "300", "30Gi")}), b = Add("b", {ResultOf("gpu-a0", "300", "30Gi")});
  kit::Must(claims_->Prepare(a));
  kit::Must(claims_->Prepare(b));
  folder_.Write("nvidia.json", "{}");

  kit::Must(claims_->Unprepare(a));
  kit::Must(claims_->Unprepare(a));

  EXPECT_THAT(Files(), ElementsAre(FileOf(b), "nvidia.json"));
}

TEST_F(GpuClaimsTest, RefusalsNameTheClaimAndWhatToDo) {
  const ClaimName waiting = Add("waiting", {}), lost = Add("lost", {ResultOf("gpu-b7", "1", "1Gi")});
  const ClaimName sick = Add("sick", {ResultOf("gpu-a1", "1", "1Gi")});
  Json other_pool = ResultOf("gpu-a0", "1", "1Gi"), other_driver = other_pool;
  other_pool["pool"] = "node-2";
  other_driver["driver"] = "gpu.nvidia.com";
  const ClaimName far = Add("far", {other_pool}), foreign = Add("foreign", {other_driver});
  gpus_[1].is_healthy = false;

  EXPECT_THAT(Refusal({"team-a", "none", "u"}), HasSubstr("ResourceClaim team-a/none does not exist"));
  EXPECT_THAT(
      Refusal({"team-a", "waiting", "u"}),
      AllOf(HasSubstr("ResourceClaim team-a/waiting: metadata.uid is " + waiting.uid), HasSubstr("delete the pod")));
  EXPECT_THAT(Refusal(waiting), HasSubstr("team-a/waiting: status.allocation is empty"));
  EXPECT_THAT(Refusal(lost), HasSubstr("team-a/lost: status.allocation.devices.results: this node has no GPU gpu-b7"));
  EXPECT_THAT(Refusal(sick), HasSubstr("team-a/sick: status.allocation.devices.results: GPU-A1 is sick"));
  EXPECT_THAT(Refusal(far),
              HasSubstr("team-a/far: status.allocation.devices.results: device gpu-a0 is of pool node-2"));
  EXPECT_THAT(Refusal(foreign), HasSubstr("team-a/foreign: status.allocation.devices.results: no device is of driver"));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(GpuClaimsTest, WhatIsWellAgainIsPrepared) {
  const ClaimName claim = Add("part", {ResultOf("gpu-a1", "1", "1Gi")});
  gpus_[1].is_healthy = false;
  EXPECT_THAT(Refusal(claim), HasSubstr("sick"));
  gpus_[1].is_healthy = true;

  EXPECT_TRUE(claims_->Prepare(claim));
}

TEST_F(GpuClaimsTest, InAnotherModeNothingNewIsPrepared) {
  const ClaimName claim = Add("part", {ResultOf("gpu-a1", "1", "1Gi")});
  claims_->Accept(false);

  EXPECT_THAT(Refusal(claim), HasSubstr("node node-1 gives no GPUs by claims now"));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(GpuClaimsTest, AGpuThatADevicePluginHasGivenWaitsUntilThatHasEnded) {
  const ClaimName claim = Add("part", {ResultOf("gpu-a1", "1", "1Gi")});
  holders_["GPU-A1"] = "team-b/old, container main, by nvidia.com/gpu";

  EXPECT_THAT(Refusal(claim), HasSubstr("GPU-A1 is held by team-b/old, container main"));
  holders_.clear();
  EXPECT_TRUE(claims_->Prepare(claim));
}

TEST_F(GpuClaimsTest, NoGpuGivesMoreThanItHasWhateverIsAllocated) {
  const ClaimName a = Add("a", {ResultOf("gpu-a0", "600", "10Gi")}), b = Add("b", {ResultOf("gpu-a0", "401", "10Gi")});
  const ClaimName c = Add("c", {ResultOf("gpu-a0", "100", "71Gi")}), d = Add("d", {ResultOf("gpu-a0", "400", "70Gi")});
  kit::Must(claims_->Prepare(a));

  EXPECT_THAT(Refusal(b), AllOf(HasSubstr("GPU-A0 would give 1001 of 1000 thousandths"), HasSubstr("(team-a/a)")));
  EXPECT_THAT(Refusal(c), HasSubstr("82944 of 81920 MiB"));
  EXPECT_TRUE(claims_->Prepare(d));
}

TEST_F(GpuClaimsTest, AClaimThatIsGoneKeepsNobodyOut) {
  const ClaimName a = Add("a", {ResultOf("gpu-a0", "600", "10Gi")}), b = Add("b", {ResultOf("gpu-a0", "600", "10Gi")});
  kit::Must(claims_->Prepare(a));
  Remove(a);

  EXPECT_TRUE(claims_->Prepare(b));
  EXPECT_THAT(Files(), ElementsAre(FileOf(b)));
}

TEST_F(GpuClaimsTest, FilesOfClaimsThatAreGoneOrMadeAnewOrGivenBackAreRemovedAndNoOthers) {
  const ClaimName gone = Add("gone", {ResultOf("gpu-a0", "1", "1Gi")}),
                  anew = Add("anew", {ResultOf("gpu-a0", "1", "1Gi")});
  const ClaimName back = Add("back", {ResultOf("gpu-a0", "1", "1Gi")}),
                  kept = Add("kept", {ResultOf("gpu-a0", "1", "1Gi")});
  for (const ClaimName& claim : {gone, anew, back, kept}) kit::Must(claims_->Prepare(claim));
  Remove(gone);
  Remove(anew);
  Add("anew", {ResultOf("gpu-a0", "1", "1Gi")});
  Json given = *server_.Get("resourceclaims.resource.k8s.io", {"team-a", "back"});
  given["status"] = Json::MakeObject();
  kit::Must(server_.Update("resourceclaims.resource.k8s.io", given, "status"));

  door_.is_open = false;
  claims_->RemoveStale();
  EXPECT_EQ(Files().size(), 4U);
  door_.is_open = true;
  claims_->RemoveStale();
  EXPECT_THAT(Files(), ElementsAre(FileOf(kept)));
}

TEST_F(GpuClaimsTest, BeforeItHasSeenItsGpusItSaysSoAndNotThatTheyAreGone) {
  const ClaimName claim = Add("part", {ResultOf("gpu-a0", "300", "30Gi")});
  gpus_.clear();
  EXPECT_THAT(Refusal(claim), HasSubstr("sees no GPU yet; wait"));
}

TEST_F(GpuClaimsTest, AFileThatWasCutOffOrChangedIsNoClaim) {
  const ClaimName claim = Add("part", {ResultOf("gpu-a0", "300", "30Gi")});
  kit::Must(claims_->Prepare(claim));
  folder_.Write(FileOf(claim), R"({"cdiVersion":"0.6.0","annotations":{"ai.centauruscloud.io/claim":"{\"uid\":)");
  folder_.Write("grus-claim-x.json.new", "{");
  Begin();

  EXPECT_THAT(Files(), IsEmpty());
  EXPECT_TRUE(claims_->Prepare(claim));
  EXPECT_THAT(Files(), ElementsAre(FileOf(claim)));
}

TEST_F(GpuClaimsTest, TheKubeletsIdsNameWhatContainersHold) {
  const ClaimName claim = Add("part", {ResultOf("gpu-a1", "300", "30Gi")});
  const auto ready = kit::Must(claims_->Prepare(claim));

  EXPECT_THAT(prepared_->PartsOf(ready[0].cdi_ids[0]), ElementsAre(GpuPart{"GPU-A1", 300, 30720}));
  EXPECT_THAT(prepared_->PartsOf("nvidia.com/gpu=" + claim.uid + "-gpu"), IsEmpty());
  EXPECT_EQ(prepared_->Holders(), (std::map<std::string, std::string>{{"GPU-A1", "ResourceClaim team-a/part"}}));
}

TEST_F(GpuClaimsTest, AUidThatIsNoneWritesNoFile) {
  EXPECT_FALSE(prepared_->Write({.claim = {"team-a", "part", "../../etc/x"}}));
  EXPECT_THAT(Files(), IsEmpty());
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// A node whose label goes from one way of holding containers to the other: both of them, with their own records.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodeagent/limits/cuda_share.h"
#include "nodeagent/limits/cuda_sharing.h"
#include "nodeagent/mps/mps_sharing.h"
#include "nodeagent/sharing/part_enforcers.h"
#include "tests/kit/manual_clock.h"
#include "tests/kit/must.h"
#include "tests/kit/temp_dir.h"
#include "tests/nodeagent/gpu_states.h"

namespace grus {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

constexpr PartResource kMilli = PartResource::kMilli;
constexpr char kGpu[] = "GPU-00000000-0000-0000-0000-000000000000";

std::vector<PartId> Ids(int from, int count) {
  std::vector<PartId> ids;
  for (int i = 0; i < count; ++i) ids.push_back({kGpu, from + i});
  return ids;
}

class NoHolders final : public DeviceHolders {
 public:
  kube::Result<std::vector<HeldDevices>> List() override { return std::vector<HeldDevices>(); }
};

class EnforcementSwitchTest : public ::testing::Test {
 protected:
  EnforcementSwitchTest() {
    auto look = std::make_shared<NodeSample>(testing::LookAt({testing::WorkingGpu(0)}));
    look->gpus[0].gpu.uuid = kGpu;
    look_ = std::move(look);
  }
  // A new agent.
  void Begin(Enforcement way) {
    all_.reset();
    mps_.emplace(MpsOptions{.folder = folder_.path("mps")}, holders_, clock_, log_);
    cuda_.emplace(
        CudaOptions{.library = library_, .folder = folder_.path("cuda"), .shares = folder_.path("shares")}, holders_,
        [this] { return look_; }, clock_, log_);
    all_.emplace(std::vector<PartEnforcer*>{&*mps_, &*cuda_});
    Switch(way);
  }
  void Switch(Enforcement way) {
    mps_->Want(way == Enforcement::kMps);
    cuda_->Want(way == Enforcement::kCooperative);
    clock_.Advance(std::chrono::seconds(10));
    cuda_->LookOnce();
  }
  ContainerSetup Give(const std::vector<PartId>& ids) {
    ContainerSetup setup;
    kit::Must(all_->Give({kMilli, ids, 1000}, setup));
    return setup;
  }
  Enforcement WayOf(const std::vector<PartId>& ids) const { return all_->WayOf({.ids = {{kMilli, ids}}}); }
  bool HasAccount(const std::vector<PartId>& ids) const {
    return ShareFolder(folder_.path("shares/" + ShareName(kMilli, ids))).HasAccount();
  }

  kube::testing::ManualClock clock_;
  const kube::Log log_;
  const kube::testing::TempDir folder_;
  const std::string library_ = folder_.Write("image/libgrus-cuda.so", "a library");
  std::shared_ptr<const NodeSample> look_;
  NoHolders holders_;
  std::optional<MpsSharing> mps_;
  std::optional<CudaSharing> cuda_;
  std::optional<PartEnforcers> all_;
};

TEST_F(EnforcementSwitchTest, WhatRunsKeepsItsWayAndWhatIsGivenNextHasTheOther) {
  Begin(Enforcement::kMps);
  const ContainerSetup by_mps = Give(Ids(0, 300));
  EXPECT_THAT(by_mps.environment, Not(IsEmpty()));
  EXPECT_FALSE(HasAccount(Ids(0, 300)));

  Switch(Enforcement::kCooperative);
  const ContainerSetup cooperative = Give(Ids(300, 300));
  EXPECT_THAT(cooperative.environment, IsEmpty());
  EXPECT_TRUE(HasAccount(Ids(300, 300)));
  for (const Enforcement after : {Enforcement::kCooperative, Enforcement::kMps, Enforcement::kNone}) {
    EXPECT_EQ(WayOf(Ids(0, 300)), Enforcement::kMps);
    EXPECT_EQ(WayOf(Ids(300, 300)), Enforcement::kCooperative);
    EXPECT_EQ(WayOf(Ids(299, 2)), Enforcement::kNone);
    EXPECT_FALSE(all_->MayStart(kMilli, Ids(0, 300), nullptr)) << "its daemon does not run";
    EXPECT_TRUE(all_->MayStart(kMilli, Ids(300, 300), nullptr)) << "it needs no daemon";
    Begin(after);  // The next agent reads it.
  }
}

TEST_F(EnforcementSwitchTest, IdsThatAreGivenAnewAreOfTheNewWayAlone) {
  Begin(Enforcement::kMps);
  Give(Ids(0, 300));
  Switch(Enforcement::kCooperative);
  EXPECT_THAT(Give(Ids(200, 300)).mounts, Not(IsEmpty()));
  EXPECT_EQ(WayOf(Ids(0, 300)), Enforcement::kNone) << "who had these has ended";
  EXPECT_EQ(WayOf(Ids(200, 300)), Enforcement::kCooperative);
  EXPECT_TRUE(all_->MayStart(kMilli, Ids(200, 300), nullptr)) << "no daemon need be up for it";

  Switch(Enforcement::kMps);
  Give(Ids(200, 300));
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(WayOf(Ids(200, 300)), Enforcement::kMps);
    EXPECT_FALSE(HasAccount(Ids(200, 300)));
    Begin(Enforcement::kCooperative);
  }

  Switch(Enforcement::kNone);
  EXPECT_THAT(Give(Ids(200, 300)).environment, IsEmpty());
  EXPECT_EQ(WayOf(Ids(200, 300)), Enforcement::kNone);
  EXPECT_TRUE(all_->MayStart(kMilli, Ids(200, 300), nullptr));
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/frame/status_writer.h"

#include <gmock/gmock.h>

#include "controllers/frame/retry_times.h"
#include "crds/types/pod_group.h"
#include "tests/kit/reconciler_fixture.h"

namespace grus {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr char kGroups[] = "podgroups.scheduling.x-k8s.io";
const kube::ObjectKey kKey{"team-a", "g"};

class StatusWriterTest : public testing::ReconcilerFixture {
 protected:
  void SetUp() override {
    ReconcilerFixture::SetUp();
    AddGroup(kKey.name);
  }
  void AddGroup(const std::string& name) {
    kube::Json group = Named("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, "team-a");
    group["spec"]["minMember"] = 2;
    Create(kGroups, std::move(group));
  }
  api::PodGroup Group(const kube::ObjectKey& key = kKey) {
    return static_cast<const api::PodGroup&>(**client_.Get(kube::KindOf<api::PodGroup>(), key));
  }
  static api::PodGroupStatus Running(int count) {
    api::PodGroupStatus status;
    status.observed_generation = 1;
    status.phase = "Running";
    status.running = count;
    return status;
  }
  WrittenStatus Write(const api::PodGroup& group, const api::PodGroupStatus& status, kube::Duration patience = {}) {
    auto written = writer_.Write(group, status, patience, {});
    EXPECT_TRUE(written) << written.error().message();
    return written ? *written : WrittenStatus{};
  }

  kube::WriteTracker writes_;
  StatusWriter writer_{client_, &writes_, clock_};
};

TEST_F(StatusWriterTest, TheFirstSaysAllAndWhatIsTheSameIsNotWritten) {
  const WrittenStatus first = Write(Group(), Running(0));
  ASSERT_TRUE(first.object);
  EXPECT_THAT(kube::ToText(*server_.Get(kGroups, kKey)), HasSubstr(R"("running":0)"));
  EXPECT_FALSE(Write(Group(), Running(0)).object);
  EXPECT_EQ(Group().metadata.resource_version, first.object->metadata.resource_version);
}

TEST_F(StatusWriterTest, AChangeThatMayWaitIsWrittenWhenItHasWaited) {
  Write(Group(), Running(1));
  EXPECT_EQ(Write(Group(), Running(2), 3s).deferred, 3s);
  clock_.Advance(2s);
  EXPECT_EQ(Write(Group(), Running(3), 3s).deferred, 1s) << "since the first that waits";
  clock_.Advance(1s);
  EXPECT_TRUE(Write(Group(), Running(3), 3s).object);
  EXPECT_EQ(Group().status.running, 3);
  EXPECT_EQ(Write(Group(), Running(4), 3s).deferred, 3s) << "another one begins to wait";
}

TEST_F(StatusWriterTest, AChangeThatMayNotWaitTakesTheOthersAlong) {
  Write(Group(), Running(1));
  EXPECT_TRUE(Write(Group(), Running(2), 3s).deferred);
  EXPECT_TRUE(Write(Group(), Running(3)).object);
  clock_.Advance(3s);
  EXPECT_EQ(Write(Group(), Running(4), 3s).deferred, 3s);
}

TEST_F(StatusWriterTest, OfManyChangesThatMayWaitOneIsWrittenInTwoSeconds) {
  clock_.Advance(1h);
  const auto write_all = [&](const char* set, int running, kube::Duration patience) {
    int written = 0;
    for (int i = 0; i < 30; ++i) {
      const kube::ObjectKey key{"team-a", set + std::to_string(i)};
      if (!server_.Get(kGroups, key)) AddGroup(key.name);
      if (Write(Group(key), Running(running), patience).object) ++written;
    }
    return written;
  };
  EXPECT_EQ(write_all("g-", 1, 3s), 0);
  clock_.Advance(3s);
  EXPECT_EQ(write_all("g-", 1, 3s), 10) << "those of twenty quiet seconds";
  clock_.Advance(3s);
  EXPECT_EQ(write_all("g-", 1, 3s), 1);
  clock_.Advance(6s);
  EXPECT_EQ(write_all("g-", 1, 3s), 19) << "all that are left have waited four times as long";
  EXPECT_EQ(write_all("s-", 1, kSoonWait), 3);
  clock_.Advance(kSoonWait);
  EXPECT_EQ(write_all("s-", 1, kSoonWait), 27) << "they wait no longer";
  clock_.Advance(1s);
  EXPECT_EQ(write_all("t-", 1, kSoonWait), 1) << "nor do they where it is their turn";
  EXPECT_EQ(write_all("h-", 1, 0s), 30) << "what may not wait asks nobody";
}

TEST_F(StatusWriterTest, AnotherObjectOfThatNameIsNotTouched) {
  api::PodGroup other = Group();
  other.metadata.uid = "another";
  EXPECT_FALSE(writer_.Write(other, Running(2), {}, {}));
  EXPECT_EQ(Group().status.running, 0);
}

TEST_F(StatusWriterTest, WhatIsGoneIsAnErrorThatSaysSo) {
  const api::PodGroup group = Group();
  ASSERT_TRUE(server_.Delete(kGroups, kKey));
  const auto written = writer_.Write(group, Running(2), {}, {});
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code(), kube::ErrorCode::kNotFound);
  EXPECT_THAT(written.error().message(), HasSubstr("write the status of PodGroup team-a/g"));
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Rule: what a container's account says is what the driver gave its programs, to the byte, and never past the limit.
#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

constexpr char kRefused[] = "error 2";

class MemoryLimitTest : public LimitedTest {};

TEST_F(MemoryLimitTest, ContextsAndAllocationsCountTogether) {
  Share({}, {kGiB});
  const auto client = Start();
  EXPECT_EQ(Counted(), 0U) << "nobody has used the driver";
  EXPECT_THAT(client->Ask("start"), StartsWith("ok"));
  EXPECT_EQ(Counted(), 300 * kMiB);
  const std::string pointer = client->Ask("alloc 1000").substr(3);
  EXPECT_EQ(Counted(), 300 * kMiB + 1024);
  EXPECT_EQ(Counted(), world_->Used(0));
  EXPECT_EQ(client->Ask("alloc 759169024"), kRefused) << "a byte more than 724 MiB less what is there";
  EXPECT_THAT(client->Ask("alloc 759168000"), StartsWith("ok"));
  EXPECT_EQ(Counted(), kGiB);
  EXPECT_EQ(world_->Used(0), kGiB);
  EXPECT_EQ(client->Ask("free " + pointer), "ok");
  EXPECT_EQ(Counted(), kGiB - 1024);
  EXPECT_EQ(world_->Used(0), kGiB - 1024);
}

TEST_F(MemoryLimitTest, EachWayToTheDriverLeadsThroughTheAccount) {
  const std::string folder = fake::FakeCudaFolder();
  const std::vector<std::vector<std::string>> ways = {{},
                                                      {"--by=libcuda.so"},
                                                      {"--by=" + folder + "/libcuda.so.1"},
                                                      {"--by=" + folder + "/libcuda.so"},
                                                      {"--by=default"},
                                                      {"--by=find"},
                                                      {"--by=find-v1"},
                                                      {"--by=find", "--per-thread"},
                                                      {"--by=find", "--version=11030"},
                                                      {"--by=find", "--version=13000"}};
  Share({.driver_version = 13000}, {kGiB});
  for (const auto& way : ways) {
    const auto client = Start(way);
    const std::string name = ::testing::PrintToString(way);
    EXPECT_THAT(client->Ask("start"), StartsWith("ok")) << name;
    EXPECT_THAT(client->Ask("alloc 1048576"), StartsWith("ok")) << name;
    EXPECT_EQ(client->Ask("alloc 1073741824"), kRefused) << name;
    EXPECT_EQ(Counted(), 301 * kMiB) << name;
    client->Kill();
  }
  const auto linked = Start({"--by=linked"}, "fake-cuda-client-linked");
  EXPECT_THAT(linked->Ask("start"), StartsWith("ok"));
  EXPECT_THAT(linked->Ask("alloc 1048576"), StartsWith("ok"));
  EXPECT_EQ(linked->Ask("alloc 1073741824"), kRefused);
  EXPECT_EQ(Counted(), 301 * kMiB);
}

// Ours would take the one's parameters for the other's.
TEST_F(MemoryLimitTest, AFunctionNewerThanAllThatAreKnownIsTheDriversOwn) {
  Share({.driver_version = 99990}, {kGiB});
  const auto client = Start({"--by=find"});
  EXPECT_THAT(client->Ask("start"), StartsWith("ok"));
  EXPECT_THAT(client->Ask("alloc3 1048576"), StartsWith("ok"));
  EXPECT_EQ(client->Ask("alloc 1073741824"), kRefused) << "what is known is ours";
  const auto newer = Start({"--by=find", "--version=99990"});
  EXPECT_THAT(newer->Ask("start"), StartsWith("ok"));
  EXPECT_EQ(newer->Ask("managed 1073741824"), kRefused) << "also where it is asked for by a new name";
}

TEST_F(MemoryLimitTest, WithoutADriverThereIsNoFunctionOfOne) {
  Share({}, {kGiB});
  const auto client = Start({"--by=program"});
  EXPECT_EQ(client->Ask("alloc 1048576"), "error 500") << "found where the driver has not been loaded";
}

TEST_F(MemoryLimitTest, SmallRowsTakeNoMoreThanTheirPitch) {
  Share({}, {812 * kMiB});
  const auto client = Start();
  client->Ask("start");
  EXPECT_THAT(client->Ask("pitch 4 1048576"), StartsWith("ok"));
  EXPECT_EQ(Counted(), 812 * kMiB);
  EXPECT_EQ(Counted(), world_->Used(0));
  EXPECT_EQ(client->Ask("pitch 4 1"), kRefused);
}

TEST_F(MemoryLimitTest, AllProcessesOfAContainerShareOneLimit) {
  Share({}, {kGiB});
  const auto first = Start(), second = Start();
  EXPECT_THAT(first->Ask("start"), StartsWith("ok"));
  EXPECT_THAT(second->Ask("start"), StartsWith("ok"));
  EXPECT_THAT(first->Ask("alloc 209715200"), StartsWith("ok"));
  EXPECT_EQ(second->Ask("alloc 241172480"), kRefused) << "224 MiB are left, and a little less asked for";
  EXPECT_EQ(Counted(), world_->Used(0));
  first->Kill();
  EXPECT_THAT(second->Ask("alloc 241172480"), StartsWith("ok")) << "the dead have nothing";
  EXPECT_EQ(Counted(), world_->Used(0));
}

TEST_F(MemoryLimitTest, ProgramsAreToldOfTheirPart) {
  Share({}, {kGiB});
  const auto client = Start();
  EXPECT_THAT(client->Ask("start"), StartsWith("ok"));
  EXPECT_EQ(client->Ask("total"), "ok 1073741824");
  EXPECT_EQ(client->Ask("info"), "ok 759169024 1073741824");
  client->Ask("alloc 1048576");
  EXPECT_EQ(client->Ask("info"), "ok 758120448 1073741824");
}

TEST_F(MemoryLimitTest, WhatEndsWithItsContextIsGivenBack) {
  Share({}, {kGiB});
  const auto client = Start();
  client->Ask("start");
  const std::string context = client->Ask("context").substr(3);
  client->Ask("current " + context);
  client->Ask("alloc 1048576");
  EXPECT_EQ(Counted(), 601 * kMiB);
  EXPECT_EQ(client->Ask("destroy " + context), "ok");
  EXPECT_EQ(Counted(), 300 * kMiB);
  EXPECT_EQ(Counted(), world_->Used(0));
  client->Ask("retain");
  client->Ask("alloc 1048576");
  EXPECT_EQ(client->Ask("reset"), "ok");
  EXPECT_EQ(Counted(), world_->Used(0));
}

// In the middle of a call, or of that of another.
TEST_F(MemoryLimitTest, ProcessesThatAreKilledLeaveNothingBehind) {
  Share({.context_bytes = 10 * kMiB}, {kGiB});
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<fake::ClientProcess>> clients;
    for (int i = 0; i < 8; ++i) clients.push_back(Start());
    for (auto& client : clients) ASSERT_THAT(client->Ask("start"), StartsWith("ok"));
    for (auto& client : clients) client->Tell("random " + std::to_string(client->pid()) + " 4000 16777216");
    for (std::size_t i = 0; i < 4; ++i) clients[i]->Kill();
    for (std::size_t i = 4; i < clients.size(); ++i) EXPECT_THAT(clients[i]->Hear(), StartsWith("ok"));
    ASSERT_LE(world_->Used(0), kGiB);
    EXPECT_EQ(clients.back()->Ask("alloc 1073741824"), kRefused);  // The dead are swept before that.
    ASSERT_EQ(Counted(), world_->Used(0)) << "round " << round;
  }
}

TEST_F(MemoryLimitTest, AFailedCallIsGivenBack) {
  Share({}, {kGiB});
  const auto client = Start();
  client->Ask("start");
  world_->Fail("cuMemAlloc_v2", 1, 999);
  EXPECT_EQ(client->Ask("alloc 1048576"), "error 999");
  EXPECT_EQ(Counted(), 300 * kMiB);
  EXPECT_EQ(client->Ask("free 0x1234"), "error 1") << "it was never allocated";
  EXPECT_EQ(Counted(), 300 * kMiB);
}

TEST_F(MemoryLimitTest, WithoutAShareNothingIsLimited) {
  Share({}, {kGiB});
  std::filesystem::remove_all(folder_->path());
  const auto client = Start();
  EXPECT_THAT(client->Ask("start"), StartsWith("ok"));
  EXPECT_THAT(client->Ask("alloc 2147483648"), StartsWith("ok"));
}

TEST_F(MemoryLimitTest, WithADamagedShareNothingIsGiven) {
  Share({}, {kGiB});
  std::filesystem::resize_file(folder_->path() + "/account", 100);
  const auto client = Start();
  EXPECT_EQ(client->Ask("start"), kRefused);
}

}  // namespace
}  // namespace grus::cuda

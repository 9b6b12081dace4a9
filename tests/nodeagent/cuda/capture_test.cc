// SPDX-License-Identifier: Apache-2.0
// Rule: what the library asks the driver for itself spoils no capture of the program.
#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

class CaptureTest : public LimitedTest {};

TEST_F(CaptureTest, LaunchesOfAnotherThreadThatAreMeasuredSpoilNone) {
  Share({}, {kGiB}, 500);
  const auto client = Start();
  client->Ask("start");
  const std::string captured = client->Ask("stream 1").substr(3), other = client->Ask("stream 1").substr(3);
  EXPECT_EQ(client->Ask("capture " + captured + " 0"), "ok");
  EXPECT_EQ(client->Ask("launch us1 1 " + captured), "ok");
  EXPECT_EQ(client->Ask("aside launch us1 8 " + other), "ok");
  EXPECT_EQ(client->Ask("capturing " + captured), "ok 1");
  EXPECT_THAT(client->Ask("endcapture " + captured), StartsWith("ok"));
  EXPECT_EQ(client->Ask("capturemode 0"), "ok 0") << "the mode of a thread is as it was";
}

TEST_F(CaptureTest, AThreadsOwnModeStaysAsItWas) {
  Share({}, {kGiB}, 500);
  const auto client = Start();
  client->Ask("start");
  EXPECT_EQ(client->Ask("capturemode 1"), "ok 0");
  EXPECT_EQ(client->Ask("launch us1 8"), "ok");
  EXPECT_EQ(client->Ask("capturemode 1"), "ok 1");
}

// What pools keep is given back before another allocation is refused.
TEST_F(CaptureTest, TrimmedPoolsSpoilNone) {
  Share({}, {kGiB});
  const auto client = Start();
  client->Ask("start");
  const std::string captured = client->Ask("stream 1").substr(3), other = client->Ask("stream 1").substr(3);
  client->Ask("threshold " + client->Ask("defaultpool").substr(3) + " 1073741824");
  const std::string pointer = client->Ask("async 536870912 " + other).substr(3);
  EXPECT_EQ(client->Ask("freeasync " + pointer + " " + other), "ok");
  EXPECT_EQ(client->Ask("capture " + captured + " 0"), "ok");
  EXPECT_THAT(client->Ask("aside create 536870912"), StartsWith("ok"));
  EXPECT_EQ(client->Ask("capturing " + captured), "ok 1");
}

TEST_F(CaptureTest, WhatAThreadsOwnStreamCapturesIsNotAllocatedNow) {
  Share({}, {kGiB});
  const auto client = Start({"--per-thread"});
  client->Ask("start");
  EXPECT_EQ(client->Ask("capture 0"), "ok");
  EXPECT_EQ(client->Ask("capturing 0"), "ok 1");
  const std::string pointer = client->Ask("async 2147483648");
  EXPECT_THAT(pointer, StartsWith("ok")) << "more than there is, and none of it now";
  EXPECT_EQ(client->Ask("freeasync " + pointer.substr(3)), "ok");
  EXPECT_THAT(client->Ask("endcapture 0"), StartsWith("ok"));
  EXPECT_EQ(Counted(), 300 * kMiB);
}

TEST_F(CaptureTest, AnOldDriverWithoutModesMeasuresToo) {
  Share({}, {kGiB}, 500);
  world_->Fail("cuThreadExchangeStreamCaptureMode", 0, 801);
  const auto client = Start();
  client->Ask("start");
  world_->HoldBefore("cuEventRecord");
  client->Tell("launch us1 8");
  world_->AwaitHeld();  // A launch is marked.
  world_->LetGo();
  EXPECT_EQ(client->Hear(), "ok");
}

// Nothing is measured in a stream that is captured: the events would be in the graph.
TEST_F(CaptureTest, TheEndOfOneIsNotThatOfAnotherAndOneThatCouldNotBeginIsNone) {
  Share({}, {kGiB}, 500);
  const auto client = Start();
  client->Ask("start");
  const std::string first = client->Ask("stream 1").substr(3), second = client->Ask("stream 1").substr(3);
  EXPECT_EQ(client->Ask("capture " + first + " 2"), "ok");
  EXPECT_EQ(client->Ask("capture " + second + " 2"), "ok");
  EXPECT_EQ(client->Ask("capture 0 2"), "error 900") << "the legacy stream cannot be captured";
  EXPECT_THAT(client->Ask("endcapture " + first), StartsWith("ok"));
  EXPECT_EQ(client->Ask("endcapture " + first), "error 1") << "it has ended already";

  world_->HoldBefore("cuEventRecord");
  EXPECT_EQ(client->Ask("launch us1 1 " + second), "ok");
  EXPECT_THAT(client->Ask("endcapture " + second), StartsWith("ok"));
  client->Tell("launch us1 1 " + second);
  world_->AwaitHeld();  // Now it runs, and is measured.
  world_->LetGo();
  EXPECT_EQ(client->Hear(), "ok");
}

}  // namespace
}  // namespace grus::cuda

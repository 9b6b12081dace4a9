// SPDX-License-Identifier: Apache-2.0
// Rule: that launches are measured is nothing that a program has to know of.
#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

class MarksTest : public LimitedTest {
 protected:
  // Its handle. It is made current.
  std::string NewContext(fake::ClientProcess& client, int gpu = 0) {
    const std::string answer = client.Ask("context " + std::to_string(gpu));
    EXPECT_THAT(answer, StartsWith("ok"));
    return answer.substr(3);
  }
};

// Another thread looks at all marks while the context ends.
TEST_F(MarksTest, EventsAreLetGoOfBeforeTheirContextEnds) {
  struct End {
    std::string function, make, command;
  };
  for (const End& end :
       {End{"cuCtxDestroy_v2", "context", "destroy"}, End{"cuCtxDetach", "context", "detach"},
        End{"cuGreenCtxDestroy", "green", "endgreen"}, End{"cuDevicePrimaryCtxRelease_v2", "retain", "release"},
        End{"cuDevicePrimaryCtxReset_v2", "retain", "reset"}}) {
    TearDownShare();
    Share({}, {4 * kGiB}, 500);
    const auto client = Start();
    client->Ask("init");
    const std::string other = NewContext(*client);
    const std::string context = client->Ask(end.make).substr(3);
    EXPECT_EQ(client->Ask("launch us1 4"), "ok");
    world_->HoldAfter(end.function);
    EXPECT_EQ(client->Ask("beside " + end.command + (end.make == "retain" ? " 0" : " " + context)), "ok");
    world_->AwaitHeld();
    EXPECT_EQ(client->Ask("current " + other), "ok");
    EXPECT_EQ(client->Ask("launch us1 8"), "ok") << end.function;
    world_->LetGo();
    EXPECT_EQ(client->Ask("join"), "ok") << end.function;
  }
}

TEST_F(MarksTest, APrimaryContextThatOthersUseIsMeasuredOn) {
  Share({}, {4 * kGiB}, 500);
  const auto client = Start();
  client->Ask("start");
  client->Ask("retain");
  EXPECT_EQ(client->Ask("launch us1 4"), "ok");
  EXPECT_EQ(client->Ask("release"), "ok");
  world_->HoldBefore("cuEventRecord");
  client->Tell("launch us1 64");  // Of a kernel that little is known of, one of so many is marked.
  world_->AwaitHeld();
  world_->LetGo();
  EXPECT_EQ(client->Hear(), "ok");
  EXPECT_EQ(client->Ask("release"), "ok");
  EXPECT_EQ(Counted(), 0U);
  EXPECT_EQ(Counted(), world_->Used(0));
}

// The driver lets a thread wait in cuEventRecord() where a queue is full; what fills it may need the other GPU.
TEST_F(MarksTest, ARecordThatWaitsHoldsUpNoOtherGpu) {
  for (const bool is_first : {true, false}) {
    TearDownShare();
    Share({.gpus = {16 * kGiB, 16 * kGiB}}, {4 * kGiB, 4 * kGiB}, 500);
    const auto client = Start();
    client->Ask("init");
    const std::string first = NewContext(*client), second = NewContext(*client, 1);
    EXPECT_EQ(client->Ask("launch us1"), "ok");
    EXPECT_EQ(client->Ask("current " + first), "ok");
    if (!is_first) client->Ask("launch us1");
    world_->HoldBefore("cuEventRecord");
    EXPECT_EQ(client->Ask("beside launch us1"), "ok");
    world_->AwaitHeld();
    EXPECT_EQ(client->Ask("current " + second), "ok");
    EXPECT_EQ(client->Ask("launch us1 4"), "ok");
    EXPECT_TRUE(world_->IsHeld()) << "the second GPU waited for the first, whose first mark it is: " << is_first;
    world_->LetGo();
    EXPECT_EQ(client->Ask("join"), "ok");
  }
}

}  // namespace
}  // namespace grus::cuda

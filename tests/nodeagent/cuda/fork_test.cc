// SPDX-License-Identifier: Apache-2.0
// Rule: a child of fork() waits for no lock that a thread held which it does not have.
#include "tests/nodeagent/cuda/limited_test.h"

namespace grus::cuda {
namespace {

using ::testing::StartsWith;

class ForkTest : public LimitedTest {};

TEST_F(ForkTest, AChildThatIsMadeWhileAThreadIsInTheDriverGoesOn) {
  Share({}, {kGiB}, 500);
  const auto client = Start();
  client->Ask("start");
  const std::string pool = client->Ask("pool").substr(3);
  world_->HoldBefore("cuMemPoolDestroy");
  EXPECT_EQ(client->Ask("beside destroypool " + pool), "ok");
  world_->AwaitHeld();
  EXPECT_THAT(client->Ask("fork"), StartsWith("ok"));
  EXPECT_EQ(client->Ask("sync"), "error 3") << "it has no driver, and knows that";
}

TEST_F(ForkTest, AlsoWhileMarksAreLookedAt) {
  Share({}, {kGiB}, 500);
  const auto client = Start();
  client->Ask("init");
  const std::string context = client->Ask("context").substr(3);
  EXPECT_EQ(client->Ask("launch us1"), "ok");
  world_->HoldBefore("cuEventQuery");
  EXPECT_EQ(client->Ask("beside launch us1"), "ok");
  world_->AwaitHeld();
  EXPECT_THAT(client->Ask("fork"), StartsWith("ok"));
  EXPECT_EQ(client->Ask("destroy " + context), "error 3");
}

}  // namespace
}  // namespace grus::cuda

// SPDX-License-Identifier: Apache-2.0
// Rule: a call that could wait for a stream spoils the captures that do not allow it, as NVIDIA's driver has it.
#include "tests/nodeagent/cuda/fake/fake_test.h"

namespace grus::cuda::fake {
namespace {

class FakeCaptureTest : public FakeTest {
 protected:
  FakeCaptureTest() : world(Path()), client({world.Environment()}) {
    Ask("start");
    stream = Ask("stream 1").substr(3);
    event = Ask("event").substr(3);
  }
  std::string Ask(const std::string& command) { return client.Ask(command); }

  FakeWorld world;
  ClientProcess client;
  std::string stream, event;
};

TEST_F(FakeCaptureTest, OtherThreadsSpoilAGlobalOne) {
  for (const std::string& call : {"done " + event, "syncevent " + event, std::string("sync"), std::string("syncall"),
                                  std::string("alloc 1000"), std::string("trimgraph")}) {
    EXPECT_EQ(Ask("capture " + stream + " 0"), "ok");
    EXPECT_EQ(Ask("aside " + call), "error 900") << call;
    EXPECT_EQ(Ask("capturing " + stream), "ok 2") << call;
    EXPECT_EQ(Ask("endcapture " + stream), "error 901") << call;
    EXPECT_EQ(Ask("capturing " + stream), "ok 0") << call;
  }
}

TEST_F(FakeCaptureTest, OneOfItsThreadAloneTheOthersDoNotSpoil) {
  EXPECT_EQ(Ask("capture " + stream + " 1"), "ok");
  EXPECT_EQ(Ask("aside done " + event), "ok");
  EXPECT_EQ(Ask("capturing " + stream), "ok 1");
  EXPECT_EQ(Ask("done " + event), "error 900");
  EXPECT_EQ(Ask("capturing " + stream), "ok 2");
}

TEST_F(FakeCaptureTest, AThreadThatIsRelaxedSpoilsNone) {
  EXPECT_EQ(Ask("capturemode 2"), "ok 0");
  EXPECT_EQ(Ask("capture " + stream + " 0"), "ok");
  EXPECT_EQ(Ask("done " + event), "ok");
  EXPECT_EQ(Ask("capturing " + stream), "ok 1");
  EXPECT_EQ(Ask("capturemode 0"), "ok 2");
  EXPECT_EQ(Ask("capturemode 3"), "error 1");
}

}  // namespace
}  // namespace grus::cuda::fake

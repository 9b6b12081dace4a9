// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/cluster/controller_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/clientlib/testing/cluster/cluster_world.h"

namespace kube::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A ConfigMap that a controller has something to say about.
struct EventWorld : ClusterWorld {
  EventWorld() {
    Json map = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "ConfigMap"}});
    map["metadata"] = Json::MakeObject({{"name", "a"}, {"namespace", "default"}});
    Create("configmaps", std::move(map));
  }
  void Warn(const std::string& message, std::string_view reason = "Odd") {
    events.Record(Get("configmaps", "a"), "Warning", reason, message);
    Run(1s);
  }

  FakeClusterOptions options;
  ClusterContext context{simulation, server, options};
  ControllerEvents events{context, "some-controller"};
};

TEST(ControllerEvents, SayWhoSaidWhatAboutWhat) {
  EventWorld world;

  world.Warn("it is odd");

  const auto events = world.server.List("events", "default");
  ASSERT_THAT(events, SizeIs(1));
  const Json& event = *events[0];
  EXPECT_EQ(TextAt(event, {"type"}), "Warning");
  EXPECT_EQ(TextAt(event, {"involvedObject", "kind"}), "ConfigMap");
  EXPECT_EQ(TextAt(event, {"involvedObject", "namespace"}), "default");
  EXPECT_EQ(TextAt(event, {"involvedObject", "uid"}), UidOf(world.Get("configmaps", "a")));
  EXPECT_EQ(TextAt(event, {"source", "component"}), "some-controller");
  EXPECT_EQ(TextAt(event, {"reportingComponent"}), "some-controller");
  EXPECT_EQ(TextAt(event, {"firstTimestamp"}), TextAt(event, {"lastTimestamp"}));
}

TEST(ControllerEvents, TheSameAgainCounts) {
  EventWorld world;

  for (int i = 0; i < 3; ++i) world.Warn("it is odd");

  EXPECT_THAT(world.Events("Odd", "a"), ElementsAre("3 x it is odd"));
  const Json event = *world.server.List("events", "default")[0];
  EXPECT_LT(TextAt(event, {"firstTimestamp"}), TextAt(event, {"lastTimestamp"}));
}

TEST(ControllerEvents, AfterTwentyFiveTheyAreWrittenEveryFiveMinutes) {
  EventWorld world;

  for (int i = 0; i < 40; ++i) world.Warn("it is odd");
  EXPECT_THAT(world.Events("Odd", "a"), ElementsAre("25 x it is odd"));
  world.Warn("all the same", "Other");
  EXPECT_THAT(world.Events("Other", "a"), IsEmpty());

  world.Run(5min);
  world.Warn("it is odd");
  EXPECT_THAT(world.Events("Odd", "a"), ElementsAre("41 x it is odd"));
}

}  // namespace
}  // namespace kube::testing

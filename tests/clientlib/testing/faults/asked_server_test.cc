// SPDX-License-Identifier: Apache-2.0
// Questions to a server besides the API server, and their faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "clientlib/testing/faults/campaign.h"
#include "tests/clientlib/testing/faults/net.h"

namespace kube::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Notes the faults that come with each question.
class NotingServer final : public AskedServer {
 public:
  Result<StreamResponse> Answer(const HttpRequest&, const std::vector<Fault>& faults, std::stop_token) override {
    std::string& names = faults_of.emplace_back();
    for (const Fault& fault : faults) names += fault.kind->name;
    return StreamResponse{{404, {}, "nobody knows"}, nullptr};
  }
  std::vector<std::string> faults_of;
};

TEST(AskedServer, GetsTheFaultsThatAreDueWithEachQuestion) {
  Net net("query-late@1 refused@0");
  NotingServer server;
  net.Play([&](Transport&) {
    const auto line = net.network.AttachTo(server, 0);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(What(line->Open({.target = "/"}, {})), "404");
  });
  EXPECT_THAT(server.faults_of, ElementsAre("", "query-late", ""));
  EXPECT_EQ(net.network.count(FaultPoint::kQuery), 3);
}

TEST(AskedServer, HearsNothingOfADeadProcess) {
  Net net("crash-before@0");
  NotingServer server;
  net.Play([&](Transport& line) {
    const auto asked = net.network.AttachTo(server, 0);
    EXPECT_EQ(What(line.Send(Post("a"), {})), Code(ErrorCode::kCancelled));
    EXPECT_EQ(What(asked->Open({.target = "/"}, {})), Code(ErrorCode::kCancelled));
  });
  EXPECT_THAT(server.faults_of, IsEmpty());
}

// A process that asks four times.
class Asker final : public Workload {
 public:
  std::string_view name() const override { return "asker"; }
  void Prepare(World& world) const override { world.asked = std::make_unique<NotingServer>(); }
  std::vector<Step> Steps() const override {
    return {{"it has begun", [](const World&) { return true; }, nullptr}};
  }
  void RunProcess(const ProcessContext& context, std::stop_token stop) const override {
    for (int i = 0; i < 4; ++i) (void)context.asked->Open({.target = "/"}, stop);
    WaitFor(context.clock, std::chrono::hours(100), stop);
  }
  std::vector<std::string> owned_resources() const override { return {}; }
  bool Damage(std::string_view, Json&) const override { return false; }
  void Mask(std::string_view, Json&) const override {}
  std::vector<std::string> CheckRest(const World&) const override { return {}; }
};

TEST(SweepQueries, PlaysEachFaultAtEachQuestionOrOneOfSeveral) {
  int kinds = 0;
  for (const FaultKind& kind : AllFaultKinds()) kinds += kind.point == FaultPoint::kQuery ? 1 : 0;
  const SweepReport all = SweepQueries(Asker(), 1, 1), some = SweepQueries(Asker(), 1, 1, kinds);
  EXPECT_EQ(all.places, 4);
  EXPECT_EQ(all.runs, 1 + 4 * kinds);
  EXPECT_EQ(some.runs, 1 + 4);
  EXPECT_EQ(all.divergences, 0);
}

}  // namespace
}  // namespace kube::testing

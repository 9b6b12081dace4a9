// SPDX-License-Identifier: Apache-2.0
// The campaign finds what it is for: an operator without these bugs passes, one with any of them does not.
#include "clientlib/testing/faults/campaign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/clientlib/testing/faults/copier.h"

namespace kube::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMaps[] = "configmaps", kLease[] = "copier";

Json Source(const std::string& name, const std::string& text) {
  return Json::MakeObject(
      {{"metadata",
        Json::MakeObject({{"name", name}, {"namespace", "default"}, {"labels", Json::MakeObject({{"copy", "yes"}})}})},
       {"data", Json::MakeObject({{"text", text}})}});
}
void Make(World& world, const std::string& name, const std::string& text) {
  ASSERT_TRUE(world.server.Create(kMaps, Source(name, text)));
}
void Edit(World& world, const std::string& name, const std::string& text) {
  ASSERT_TRUE(world.server.Update(kMaps, Source(name, text)));
}
void Remove(World& world, const std::string& name) { ASSERT_TRUE(world.server.Delete(kMaps, {"default", name})); }

// The copies of that source.
std::vector<const Json*> CopiesOf(const World& world, const std::string& name) {
  std::vector<const Json*> copies;
  for (const auto& [key, map] : world.All(kMaps)) {
    if (key.name.starts_with(name + "-copy")) copies.push_back(map.get());
  }
  return copies;
}
bool IsCopied(const World& world, const std::string& name, const char* text) {
  const auto copies = CopiesOf(world, name);
  return !copies.empty() && *copies[0]->At({"data", "text"}) == Json(text);
}

// Sources are made, edited, made again under the same name, and deleted.
class CopierWorkload final : public Workload {
 public:
  explicit CopierWorkload(Bug bug, int processes = 1) : bug_(bug), processes_(processes) {}

  std::string_view name() const override { return processes_ > 1 ? "copiers" : "copier"; }
  void Prepare(World& world) const override {
    for (const char* name : {"a", "b", "c"}) Make(world, name, "1");
  }
  std::vector<Step> Steps() const override {
    return {{"all are copied",
             [](const World& world) {
               return IsCopied(world, "a", "1") && IsCopied(world, "b", "1") && IsCopied(world, "c", "1");
             },
             [](World& world) {
               for (const char* name : {"a", "b"}) Edit(world, name, "2");
               Remove(world, "c");
               Make(world, "c", "3");
             }},
            {"new data is copied",
             [](const World& world) {
               return IsCopied(world, "a", "2") && IsCopied(world, "b", "2") && IsCopied(world, "c", "3");
             },
             [](World& world) { Remove(world, "b"); }},
            {"a copy goes with its source", [](const World& world) { return CopiesOf(world, "b").empty(); }, nullptr}};
  }

  void RunProcess(const ProcessContext& context, std::stop_token stop) const override {
    const Log log(LogLevel::kOff);
    Registry metrics;
    Client client(context.transport, nullptr, context.clock, {.field_manager = "copier"});
    Client lease_client(context.transport, nullptr, context.clock, {.timeout = std::chrono::seconds(5)});
    std::unique_ptr<LeaderElector> elector;
    std::unique_ptr<CopierGate> gate;
    if (uses_leases()) {
      elector = *LeaderElector::Create(lease_client, context.clock, log,
                                       {.lease = {"kube-system", kLease}, .identity = context.identity});
      gate = std::make_unique<CopierGate>(*elector);
      if (bug_ != Bug::kKeepsLeading) client.SetWriteGate(gate.get());
    }
    Manager manager(client, context.clock, log, metrics);
    Client other(context.transport, nullptr, context.clock, {.field_manager = "copier"});
    Copier copier(client, other, manager, bug_);
    copier.FeedQueue(manager.AddController(copier, {.name = "copier", .threads = 1}).queue());
    if (bug_ == Bug::kKeepsLeading) {
      (void)elector->Run(stop, [&](const std::stop_token&, const std::stop_token&) { (void)manager.Run(stop); });
    } else {
      (void)manager.Run(stop, elector.get());
    }
  }
  int processes() const override { return processes_; }
  bool uses_leases() const override { return processes_ > 1; }

  std::vector<std::string> owned_resources() const override { return {kMaps}; }
  bool Damage(std::string_view, Json& object) const override {
    if (!object.At({"metadata", "labels", "copy-of"})) return false;
    object["data"]["text"] = "damaged";
    return true;
  }
  void Mask(std::string_view, Json&) const override {}
  std::vector<std::string> CheckRest(const World& world) const override {
    std::vector<std::string> complaints;
    for (const char* name : {"a", "c"}) {
      const auto copies = CopiesOf(world, name);
      if (copies.size() != 1) complaints.push_back(std::to_string(copies.size()) + " copies of " + name);
    }
    return complaints;
  }

 private:
  const Bug bug_;
  const int processes_;
};

Workloads Only(Bug bug, int processes = 1) {
  Workloads workloads;
  workloads.push_back(std::make_unique<CopierWorkload>(bug, processes));
  return workloads;
}
CampaignReport Play(const Workloads& workloads, int schedules) {
  return RunCampaign(workloads, {.schedules = schedules, .threads = 1}, [](const std::string&) {});
}

TEST(Campaign, AnOperatorWithoutBugsPasses) {
  Workloads workloads = Only(Bug::kNone);
  workloads.push_back(std::make_unique<CopierWorkload>(Bug::kNone, 2));
  const CampaignReport report = Play(workloads, 200);
  EXPECT_EQ(report.schedules, 200);
  EXPECT_EQ(report.divergences, 0);
  EXPECT_EQ(report.false_alarms, 0);
  EXPECT_EQ(report.unreached, 0);
  EXPECT_THAT(report.failures, IsEmpty());
  EXPECT_TRUE(report.ok());
  for (const FaultKind& kind : AllFaultKinds()) {
    if (kind.point == FaultPoint::kQuery) continue;  // It asks no other server.
    EXPECT_THAT(report.table, HasSubstr("\n" + std::string(kind.name) + " ")) << "a kind that was not played";
  }
}

// A bug, and what the campaign says of it.
struct Mutant {
  const char* name;
  Bug bug;
  const char *fault, *oracle;
  int processes = 1;
  int schedules = 120;
};
class CampaignOf : public ::testing::TestWithParam<Mutant> {};

TEST_P(CampaignOf, Mutants_AreCaught) {
  const Mutant& mutant = GetParam();
  const CampaignReport report = Play(Only(mutant.bug, mutant.processes), mutant.schedules);
  EXPECT_FALSE(report.ok());
  bool is_caught = false;
  for (const std::string& failure : report.failures) {
    const std::string schedule = failure.substr(0, failure.find('\n'));
    is_caught |= schedule.find(mutant.fault) != std::string::npos && failure.find(mutant.oracle) != std::string::npos;
  }
  EXPECT_TRUE(is_caught) << report.table << (report.failures.empty() ? "nothing is wrong" : report.failures[0]);
}

INSTANTIATE_TEST_SUITE_P(
    Bugs, CampaignOf,
    ::testing::Values(
        Mutant{"GeneratesNames", Bug::kGeneratesNames, "", "end state: configmaps default/c-copy"},
        Mutant{"SwallowsErrors", Bug::kSwallowsErrors, "refused@", "never came: "},
        Mutant{"TrustsItsCache", Bug::kTrustsItsCache, "child-labels-lost@", "end state: configmaps default/"},
        Mutant{"WritesEachPass", Bug::kWritesEachPass, "", "writes within ten minutes of rest"},
        Mutant{"DeafToDeletes", Bug::kDeafToDeletes, "child-", "end state: configmaps default/"},
        Mutant{"BlindToChildren", Bug::kBlindToChildren, "child-edited@", "end state: configmaps default/"},
        // It takes a cache that is late for just so long that the copy was made again meanwhile.
        Mutant{"DeletesByName", Bug::kDeletesByName, "", "creates and deletes: configmaps default/c-copy", 1, 1500},
        Mutant{"Impatient", Bug::kImpatient, "busy-retry-after@", "Retry-After was not obeyed"},
        Mutant{"KeepsLeading", Bug::kKeepsLeading, "", "a write after the lease", 2}),
    [](const auto& mutant) { return std::string(mutant.param.name); });

TEST(Campaign, AFailureIsALineThatPlaysItAgain) {
  const Workloads workloads = Only(Bug::kSwallowsErrors);
  const CampaignReport report = Play(workloads, 60);
  ASSERT_FALSE(report.failures.empty());
  const std::string& failure = report.failures.front();
  const Result<Schedule> schedule = ParseSchedule(failure.substr(0, failure.find('\n')));
  ASSERT_TRUE(schedule) << schedule.error().message();
  const auto wrong = Replay(workloads, *schedule);
  ASSERT_TRUE(wrong);
  std::string again = ToText(*schedule);
  for (const std::string& line : *wrong) again += "\n    " + line;
  EXPECT_EQ(again, failure);
}

TEST(Campaign, ASweepKillsTheProcessRightBeforeAndRightAfterEachWrite) {
  const CopierWorkload workload(Bug::kNone);
  const SweepReport report = SweepWrites(workload, 1, 1);
  EXPECT_EQ(report.places,
            kube::testing::Run(workload, {"copier", 1, {}}).points[static_cast<std::size_t>(FaultPoint::kWrite)]);
  EXPECT_GE(report.places, 6) << "3 copies are made, 1 is edited, 1 is deleted and made again";
  EXPECT_EQ(report.runs, 1 + 2 * report.places);
  EXPECT_THAT(report.failures, IsEmpty());
  EXPECT_EQ(report.divergences, 0);
}

TEST(Campaign, ASweepTellsWhichDeathLeadsElsewhere) {
  const SweepReport report = SweepWrites(CopierWorkload(Bug::kGeneratesNames), 1, 1);
  EXPECT_GT(report.divergences, 0);
  ASSERT_FALSE(report.failures.empty());
  EXPECT_THAT(report.failures.front(), HasSubstr("copier seed=1 crash-"));
}

TEST(Campaign, TheSameScheduleGivesTheSameRun) {
  const CopierWorkload workload(Bug::kNone, 2);
  const Schedule schedule = *ParseSchedule("copiers seed=3 crash-after@2 watch-cut@4 leader-frozen@5");
  const Outcome one = kube::testing::Run(workload, schedule), two = kube::testing::Run(workload, schedule);
  EXPECT_EQ(one.end, two.end);
  EXPECT_EQ(one.births, two.births);
  EXPECT_EQ(one.points, two.points);
  EXPECT_EQ(one.took, two.took);
  EXPECT_EQ(one.last_revision, two.last_revision);
}

TEST(Campaign, AWorkloadThatIsNotThereIsAnError) {
  EXPECT_FALSE(Replay(Only(Bug::kNone), {"nobody", 1, {}}));
  EXPECT_FALSE(RunCampaign(Only(Bug::kNone), {.workloads = {"nobody"}}, [](const std::string&) {}).ok());
}

TEST(Campaign, AFaultThatNeverHappensIsCounted) {
  const Outcome run = kube::testing::Run(CopierWorkload(Bug::kNone), *ParseSchedule("copier seed=1 busy@100000"));
  EXPECT_TRUE(run.has_faults_left);
}

}  // namespace
}  // namespace kube::testing

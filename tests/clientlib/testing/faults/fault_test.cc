// SPDX-License-Identifier: Apache-2.0
#include "clientlib/testing/faults/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

namespace kube::testing {
namespace {

using ::testing::HasSubstr;

TEST(FaultKind, EachHasANameAndALineOfItsOwn) {
  std::set<std::string_view> names;
  for (const FaultKind& kind : AllFaultKinds()) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name << " is there twice";
    EXPECT_EQ(kind.name.find_first_of(" @="), std::string_view::npos) << kind.name << " is no word of a schedule";
    EXPECT_FALSE(kind.what.empty()) << kind.name;
  }
}

TEST(FaultKind, IsFoundByItsNameAlone) {
  for (const FaultKind& kind : AllFaultKinds()) EXPECT_EQ(FindFaultKind(kind.name), &kind);
  for (const char* name : {"", "crash", "crash-after ", "Crash-After", "crash-after@1"}) {
    EXPECT_EQ(FindFaultKind(name), nullptr) << name;
  }
}

TEST(Schedule, IsTheSameAfterTextAndBack) {
  for (const char* text :
       {"start seed=1", "start seed=7 crash-after@12", "two-managers seed=18446744073709551615 busy@0 busy@0",
        "a seed=0 watch-gone@3 renewal-lost@2147483647 crash-before@1"}) {
    const Result<Schedule> schedule = ParseSchedule(text);
    ASSERT_TRUE(schedule) << schedule.error().message();
    EXPECT_EQ(ToText(*schedule), text);
  }
}

TEST(Schedule, OfEachKindOfFaultCanBeWritten) {
  for (const FaultKind& kind : AllFaultKinds()) {
    const Result<Schedule> schedule = ParseSchedule(ToText({"start", 3, {{&kind, 5}}}));
    ASSERT_TRUE(schedule) << schedule.error().message();
    ASSERT_EQ(schedule->faults.size(), 1U);
    EXPECT_EQ(schedule->faults[0].kind, &kind);
    EXPECT_EQ(schedule->faults[0].at, 5);
    EXPECT_EQ(schedule->seed, 3U);
  }
}

TEST(Schedule, AnErrorSaysWhatIsWrongAndWhatIsAllowed) {
  struct Case {
    const char *text, *why;
  };
  for (const Case& c :
       {Case{"", "expected \"WORKLOAD seed=N FAULT@N ...\""}, Case{"start", "expected \"WORKLOAD seed=N FAULT@N ...\""},
        Case{"start busy@1", "expected \"WORKLOAD seed=N FAULT@N ...\""},
        Case{"start seed=", "expected \"WORKLOAD seed=N FAULT@N ...\""},
        Case{"start seed=-1", "expected \"WORKLOAD seed=N FAULT@N ...\""},
        Case{"start seed=1x", "expected \"WORKLOAD seed=N FAULT@N ...\""},
        Case{"start seed=99999999999999999999", "expected \"WORKLOAD seed=N FAULT@N ...\""},
        Case{"start seed=1 burn@1", "there is no fault burn"}, Case{"start seed=1 busy", "busy: expected FAULT@N"},
        Case{"start seed=1 busy@", "busy@: expected FAULT@N"},
        Case{"start seed=1 busy@-1", "busy@-1: expected FAULT@N"},
        Case{"start seed=1 busy@2147483648", "busy@2147483648: expected FAULT@N"},
        Case{"start seed=1 busy@1@2", "busy@1@2: expected FAULT@N"}}) {
    const Result<Schedule> schedule = ParseSchedule(c.text);
    ASSERT_FALSE(schedule) << c.text;
    EXPECT_EQ(schedule.error().code(), ErrorCode::kInvalidArgument) << c.text;
    EXPECT_THAT(schedule.error().message(), HasSubstr(c.why));
    EXPECT_THAT(schedule.error().message(), HasSubstr("\"" + std::string(c.text) + "\"")) << "the schedule itself";
  }
}

}  // namespace
}  // namespace kube::testing

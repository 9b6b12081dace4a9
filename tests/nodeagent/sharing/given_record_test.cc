// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/given_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/kit/must.h"
#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr PartResource kMilli = PartResource::kMilli;

std::vector<PartId> Ids(const std::string& gpu, int from, int count) {
  std::vector<PartId> ids;
  for (int i = 0; i < count; ++i) ids.push_back({gpu, from + i});
  return ids;
}

class GivenRecordTest : public ::testing::Test {
 protected:
  bool Has(const std::vector<PartId>& ids, PartResource resource = kMilli) const {
    return GivenRecord(folder_.path(), Enforcement::kMps).HasAll(resource, ids);  // As the next agent reads it.
  }
  const kube::testing::TempDir folder_;
};

TEST_F(GivenRecordTest, TheNextAgentKnowsWhatWasGivenAndOfWhichGpusAndResources) {
  GivenRecord record(folder_.path(), Enforcement::kMps);
  EXPECT_FALSE(record.HasAll(kMilli, Ids("GPU-0", 0, 1)));
  kit::Must(record.Set(kMilli, Ids("GPU-0", 100, 300), true));

  EXPECT_TRUE(Has(Ids("GPU-0", 100, 300)));
  EXPECT_FALSE(Has(Ids("GPU-0", 99, 2)));
  EXPECT_FALSE(Has(Ids("GPU-0", 399, 2)));
  EXPECT_FALSE(Has(Ids("GPU-1", 100, 1)));
  EXPECT_FALSE(Has(Ids("GPU-0", 100, 1), PartResource::kMemory));
  EXPECT_FALSE(Has({}));
  EXPECT_THAT(GivenRecord(folder_.path(), Enforcement::kMps).gpus(), ElementsAre("GPU-0"));
}

TEST_F(GivenRecordTest, IdsThatAreGivenAnewWithoutItAreTakenOut) {
  GivenRecord record(folder_.path(), Enforcement::kMps);
  kit::Must(record.Set(kMilli, Ids("GPU-0", 0, 10), true));
  kit::Must(record.Set(kMilli, Ids("GPU-0", 3, 2), false));

  EXPECT_TRUE(Has(Ids("GPU-0", 0, 3)));
  EXPECT_FALSE(Has(Ids("GPU-0", 3, 1)));
  EXPECT_FALSE(Has(Ids("GPU-0", 4, 1)));
  EXPECT_TRUE(Has(Ids("GPU-0", 5, 5)));
}

TEST_F(GivenRecordTest, WhereNothingIsGivenSoNothingIsWritten) {
  kit::Must(GivenRecord(folder_.path(), Enforcement::kMps).Set(kMilli, Ids("GPU-0", 0, 10), false));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("GPU-0")));
}

TEST_F(GivenRecordTest, ARecordThatCannotBeWrittenIsAsBefore) {
  GivenRecord record(folder_.path("none"), Enforcement::kCooperative);
  std::ofstream(folder_.path("none")) << "a file, where a folder should be";
  const kube::Status set = record.Set(kMilli, Ids("GPU-0", 0, 10), true);

  ASSERT_FALSE(set);
  EXPECT_THAT(set.error().message(), AllOf(HasSubstr("GPU-0/given"), HasSubstr("its folder for Cooperative")));
  EXPECT_FALSE(record.HasAll(kMilli, Ids("GPU-0", 0, 10)));
}

TEST_F(GivenRecordTest, WhatNoAgentWroteSaysNothing) {
  folder_.Write("GPU-0/given", "ai.centauruscloud.io/gpu-milli -1-5,7,x,9-99999999999,8-6\nother/thing 3\n");
  EXPECT_TRUE(Has(Ids("GPU-0", 7, 1)));
  for (const int id : {0, 1, 3, 5, 6, 8, 9, 10}) EXPECT_FALSE(Has(Ids("GPU-0", id, 1))) << id;
}

}  // namespace
}  // namespace grus

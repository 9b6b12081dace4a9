// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/enforcement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using ::testing::HasSubstr;

TEST(AskedEnforcement, TheLabelSaysSoAndOtherWordsAreErrors) {
  kube::ObjectMeta node;
  node.name = "node-1";
  EXPECT_EQ(*AskedEnforcement(node), Enforcement::kNone);
  const std::pair<const char*, Enforcement> words[] = {
      {"none", Enforcement::kNone}, {"mps", Enforcement::kMps}, {"cooperative", Enforcement::kCooperative}};
  for (const auto& [word, way] : words) {
    node.labels[api::kEnforcementLabel] = word;
    EXPECT_EQ(*AskedEnforcement(node), way) << word;
  }
  for (const char* word : {"", "Hard", "MPS"}) {
    node.labels[api::kEnforcementLabel] = word;
    EXPECT_THAT(AskedEnforcement(node).error().message(),
                HasSubstr("is \"" + std::string(word) + "\": expected cooperative, mps or none"));
  }
}

TEST(CheckEnforcement, EachWayNeedsAModeInWhichTheAgentAnswersForWhatItLimits) {
  struct Case {
    Enforcement way;
    SharingMode mode;
    const char* want;  // Of the error; empty: there is none.
  };
  const Case cases[] = {
      {Enforcement::kNone, SharingMode::kDra, ""},
      {Enforcement::kMps, SharingMode::kNone, ""},
      {Enforcement::kMps, SharingMode::kMilli, ""},
      {Enforcement::kMps, SharingMode::kAlnair, ""},
      {Enforcement::kMps, SharingMode::kGpushare,
       "MPS is not available in the mode gpushare: set the node's label "
       "sharing.ai.centauruscloud.io/mode to milli or alnair"},
      {Enforcement::kMps, SharingMode::kDra, "MPS is not available in the mode dra"},
      {Enforcement::kCooperative, SharingMode::kNone, ""},
      {Enforcement::kCooperative, SharingMode::kMilli, ""},
      {Enforcement::kCooperative, SharingMode::kAlnair, ""},
      {Enforcement::kCooperative, SharingMode::kGpushare, ""},
      {Enforcement::kCooperative, SharingMode::kDra,
       "cooperative limits are not available yet in the mode dra: set the node's label "
       "sharing.ai.centauruscloud.io/mode to milli, alnair or gpushare"},
  };
  for (const Case& c : cases) {
    const kube::Status checked = CheckEnforcement(c.way, c.mode);
    EXPECT_EQ(checked.ok() ? "" : checked.error().message().substr(0, std::string(c.want).size()), c.want)
        << NameOf(c.way) << " in " << NameOf(c.mode);
  }
}

}  // namespace
}  // namespace grus

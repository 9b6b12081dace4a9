// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/part_uses.h"

#include <gmock/gmock.h>

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

const PartUser kBert{{"team-a", "bert-0"}, "main", "GPU-1"};
const std::string kLabels =
    R"({gpu="1",uuid="GPU-1",namespace="team-a",pod="bert-0",container="main",enforcement="None"} )";

TEST(ParsePartUses, TakesWhatIsUsedOfAPart) {
  const PartUses uses =
      ParsePartUses("# HELP grus_gpu_part_milli x\ngrus_gpu_part_milli" + kLabels +
                    "300\ngrus_gpu_part_memory_limit_bytes" + kLabels + "9\ngrus_gpu_part_memory_used_bytes" + kLabels +
                    "1.5e+09\ngrus_gpu_part_sm_ratio" + kLabels + "0.25 1700000000\n");
  EXPECT_THAT(uses, ElementsAre(Pair(kBert, PartUse{1.5e9, 0.25, false})));
}

TEST(ParsePartUses, TakesWhoHasNoPartAlsoIfItsMemoryIsNotKnown) {
  EXPECT_THAT(ParsePartUses("grus_gpu_partless_processes" + kLabels + "2\n"),
              ElementsAre(Pair(kBert, PartUse{std::nullopt, std::nullopt, true})));
  EXPECT_THAT(ParsePartUses("grus_gpu_partless_memory_bytes" + kLabels + "7\n"),
              ElementsAre(Pair(kBert, PartUse{7, std::nullopt, true})));
}

TEST(ParsePartUses, UnescapesLabels) {
  const PartUses uses =
      ParsePartUses(R"(grus_gpu_part_sm_ratio{uuid="G",namespace="a\"},\\",pod="bc",container=""} 0)");
  EXPECT_THAT(uses, ElementsAre(Pair(PartUser{{"a\"},\\", "bc"}, "", "G"}, PartUse{std::nullopt, 0, false})));
}

TEST(ParsePartUses, LeavesOutLinesThatMakeNoSense) {
  const std::string name = "grus_gpu_part_memory_used_bytes";
  for (const std::string& line :
       {std::string("grus_gpu_memory_used_bytes") + kLabels + "1", name + kLabels, name + kLabels + "NaN",
        name + kLabels + "+Inf", name + kLabels + "-1", name + kLabels + "1x", name + kLabels + "x1", name + " 1",
        name + "{} 1", name + R"({uuid="G",namespace="a"} 1)", name + R"({uuid="G",namespace="a",pod="b} 1)",
        name + R"({uuid="G",namespace="a",pod="b")", name + R"({uuid="G",namespace="a",pod="b\)", name + "{",
        name + R"({uuid="G",namespace="a",pod="b\nc"} 1)", name + "{uuid=\"G\",namespace=\"a\",pod=\"\x1b[2J\"} 1",
        name + R"({uuid="G",namespace="a",pod=")" + std::string(300, 'x') + "\"} 1", std::string("<html>")}) {
    EXPECT_THAT(ParsePartUses(line), IsEmpty()) << line;
  }
}

TEST(ParsePartUses, TakesTenThousandAtMost) {
  std::string text;
  for (int i = 0; i < 10'010; ++i) {
    text += "grus_gpu_part_sm_ratio{uuid=\"G\",namespace=\"a\",pod=\"p" + std::to_string(i) + "\"} 0\n";
  }
  EXPECT_EQ(ParsePartUses(text).size(), 10'000U);
}

}  // namespace
}  // namespace grus

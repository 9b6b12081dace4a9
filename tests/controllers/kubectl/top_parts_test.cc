// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/top_parts.h"

#include <gmock/gmock.h>

#include "crds/types/sharing_names.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::shared_ptr<const kube::Node> Node(const std::string& name, const std::string& inventory) {
  auto node = std::make_shared<kube::Node>();
  node->metadata.name = name;
  node->metadata.annotations[api::kGpuInventoryAnnotation] = inventory;
  return node;
}

std::string Gpu(const std::string& uuid, const std::string& more = "") {
  return R"({"uuid":")" + uuid + R"(","memoryMiB":81920,"milli":1000,"mode":"milli")" + more + "}";
}

std::shared_ptr<const PartPod> Pod(const std::string& ns, const std::string& name, const std::string& node,
                                   const std::string& gpus, const std::string& phase = "Running") {
  auto pod = std::make_shared<PartPod>();
  pod->metadata.ns = ns;
  pod->metadata.name = name;
  if (!gpus.empty()) pod->metadata.annotations[api::kHeldGpusAnnotation] = gpus;
  pod->metadata.annotations[api::kEnforcementAnnotation] = "None";
  pod->spec.node_name = node;
  pod->status.phase = phase;
  return pod;
}

std::string Held(const std::string& gpu, int milli, int memory_mib) {
  return R"({"main":{"gpu":")" + gpu + R"(","milli":)" + std::to_string(milli) + R"(,"memoryMiB":)" +
         std::to_string(memory_mib) + "}}";
}

// The lines of the table, each cell once, with one blank between.
std::vector<std::string> Lines(const PartsView& view) {
  std::vector<std::string> lines;
  std::string line;
  for (const char c : TopPartsText(view)) {
    if (c == '\n') lines.push_back(std::exchange(line, ""));
    else if (c != ' ' || !line.ends_with(' ')) line += c;
  }
  return lines;
}

constexpr char kHeader[] = "NODE GPU NAMESPACE POD CONTAINER MILLI MEMORY UTIL ENFORCEMENT";

TEST(TopParts, ShowsPartsByNodeAndGpuAndWhatIsFree) {
  PartsView view;
  view.nodes = {Node("node-2", "[" + Gpu("GPU-c") + "]"),
                Node("node-1", "[" + Gpu("GPU-b") + "," + Gpu("GPU-a") + "]")};
  view.pods = {Pod("team-b", "y", "node-1", Held("GPU-a", 400, 32768)),
               Pod("team-a", "z", "node-1", Held("GPU-a", 300, 24576)),
               Pod("team-a", "x", "node-1", Held("GPU-b", 300, 24576))};
  view.uses[{{"team-a", "z"}, "main", "GPU-a"}] = {.memory_bytes = 1.5 * (1 << 30), .sm_ratio = 0.254};
  EXPECT_THAT(
      Lines(view),
      ElementsAre(kHeader, "node-1 0 team-a x main 300 -/24.0Gi - None", "node-1 0 - (free) - 700 56.0Gi - -",
                  "node-1 1 team-a z main 300 1.5Gi/24.0Gi 25% None", "node-1 1 team-b y main 400 -/32.0Gi - None",
                  "node-1 1 - (free) - 300 24.0Gi - -", "node-2 0 - (free) - 1000 80.0Gi - -"));
}

TEST(TopParts, OfANamespaceOnlyItsPodsAreShownAndAllCount) {
  PartsView view;
  view.ns = "team-a";
  view.nodes = {Node("n", "[" + Gpu("GPU-a") + "]")};
  view.pods = {Pod("team-b", "y", "n", Held("GPU-a", 400, 40960)), Pod("team-a", "z", "n", Held("GPU-a", 300, 20480))};
  EXPECT_THAT(Lines(view),
              ElementsAre(kHeader, "n 0 team-a z main 300 -/20.0Gi - None", "n 0 - (free) - 300 20.0Gi - -"));
  view.has_all_pods = false;
  EXPECT_THAT(Lines(view)[2], "n 0 - (free) - - - - -") << "it is not known";
}

TEST(TopParts, PodsThatEndedOrWaitHaveNothing) {
  PartsView view;
  view.nodes = {Node("n", "[" + Gpu("GPU-a") + "]")};
  view.pods = {Pod("a", "p", "n", Held("GPU-a", 400, 1), "Succeeded"),
               Pod("a", "q", "n", Held("GPU-a", 400, 1), "Failed"), Pod("a", "r", "", Held("GPU-a", 400, 1), "Pending"),
               Pod("a", "s", "n", "")};
  EXPECT_THAT(Lines(view), ElementsAre(kHeader, "n 0 - (free) - 1000 80.0Gi - -"));
}

TEST(TopParts, WhoUsesAGpuWithoutAPartIsShown) {
  PartsView view;
  view.nodes = {Node("n", "[" + Gpu("GPU-a") + "]")};
  view.uses[{{"a", "thief"}, "main", "GPU-a"}] = {.memory_bytes = 1024, .is_partless = true};
  view.uses[{{"a", "elsewhere"}, "main", "GPU-z"}] = {.memory_bytes = 1024, .is_partless = true};
  EXPECT_THAT(Lines(view),
              ElementsAre(kHeader, "n 0 a thief main 0 1.0Ki/0 - no part", "n 0 - (free) - 1000 80.0Gi - -"));
}

TEST(TopParts, ClaimsOnSeveralGpusAreALineEach) {
  PartsView view;
  view.nodes = {Node("n", "[" + Gpu("GPU-a") + "," + Gpu("GPU-b") + "]")};
  view.pods = {
      Pod("a", "p", "n",
          R"({"main":{"gpu":"GPU-a","milli":100,"memoryMiB":1,"more":[{"gpu":"GPU-b","milli":200,"memoryMiB":1}]}})")};
  const std::string text = TopPartsText(view);
  EXPECT_THAT(text, HasSubstr("900"));
  EXPECT_THAT(text, HasSubstr("800"));
}

TEST(TopParts, OfMemoryAloneNoThousandthsAreFree) {
  PartsView view;
  view.nodes = {Node("n", R"([{"uuid":"GPU-a","memoryMiB":1024,"milli":1000,"mode":"gpushare"}])")};
  EXPECT_THAT(Lines(view), ElementsAre(kHeader, "n 0 - (free) - - 1.0Gi - -"));
}

TEST(TopParts, ASickGpuIsNotFree) {
  PartsView view;
  view.nodes = {Node("n", "[" + Gpu("GPU-a", R"(,"healthy":false)") + "]")};
  EXPECT_THAT(Lines(view), ElementsAre(kHeader, "n 0 - (sick) - 1000 80.0Gi - -"));
}

TEST(TopParts, APartOfAGpuThatIsNotOfferedNamesItsUuid) {
  PartsView view;
  view.pods = {Pod("a", "p", "n", Held("GPU-lost", 100, 1024))};
  EXPECT_THAT(Lines(view), ElementsAre(kHeader, "n GPU-lost a p main 100 -/1.0Gi - None"));
}

TEST(TopParts, AnnotationsThatMakeNoSenseAreUnknownAndHideNothing) {
  const std::string gpu = R"({"main":{"gpu":"GPU-a","milli":)";
  for (const std::string& text : std::vector<std::string>{
           std::string("lie"), std::string("[]"), std::string("{\"main\":7}"), gpu + R"(-1,"memoryMiB":1}})",
           gpu + R"(1001,"memoryMiB":1}})", gpu + R"(1e300,"memoryMiB":1}})", gpu + R"(100}})",
           gpu + R"(100,"memoryMiB":9223372036854775807}})", R"({"main":{"gpu":"\u001b[2J","milli":1,"memoryMiB":1}})",
           R"({"main":{"gpu":")" + std::string(64, 'G') + R"(","milli":1,"memoryMiB":1}})",
           "{\"" + std::string(64, 'c') + R"(":{"gpu":"GPU-a","milli":1,"memoryMiB":1}})", std::string(10'000, '['),
           gpu + R"(100,"memoryMiB":1,"note":")" + std::string(kLongestAnnotation, 'x') + "\"}}"}) {
    PartsView view;
    view.nodes = {Node("n", "[" + Gpu("GPU-a") + "]")};
    view.pods = {Pod("a", "liar", "n", text), Pod("a", "p", "n", Held("GPU-a", 300, 1024))};
    EXPECT_THAT(Lines(view), ElementsAre(kHeader, "n 0 a p main 300 -/1.0Gi - None", "n 0 - (free) - 700 79.0Gi - -",
                                         "n unknown a liar - - -/- - None"))
        << text.substr(0, 100);
  }
}

TEST(TopParts, ANodeWhoseInventoryMakesNoSenseIsUnknownAndItsPodsAreShown) {
  for (const std::string& text : std::vector<std::string>{
           std::string("lie"), std::string("{}"), std::string("[7]"), std::string("[{}]"),
           R"([{"uuid":"GPU-a","memoryMiB":-1,"mode":"milli"}])",
           "[" + Gpu("GPU-a", R"(,"note":")" + std::string(kLongestAnnotation, 'x') + "\"") + "]"}) {
    PartsView view;
    view.nodes = {Node("n", text)};
    view.pods = {Pod("a", "p", "n", Held("GPU-a", 300, 1024))};
    EXPECT_THAT(Lines(view),
                ElementsAre(kHeader, "n unknown - (unknown) - - - - -", "n GPU-a a p main 300 -/1.0Gi - None"))
        << text.substr(0, 100);
  }
}

TEST(TopParts, WhatHoldsAContainerIsNotBelievedAtAnyLength) {
  PartsView view;
  auto pod = std::make_shared<PartPod>(*Pod("a", "p", "n", Held("GPU-a", 300, 1024)));
  pod->metadata.annotations[api::kEnforcementAnnotation] = std::string(64, 'x');
  view.pods = {pod};
  EXPECT_THAT(Lines(view), ElementsAre(kHeader, "n GPU-a a p main 300 -/1.0Gi - unknown"));
}

TEST(TopParts, MoreThanAGpuHasLeavesNothingFree) {
  PartsView view;
  view.nodes = {Node("n", "[" + Gpu("GPU-a") + "]")};
  view.pods = {Pod("a", "p", "n", Held("GPU-a", 700, 81920)), Pod("a", "q", "n", Held("GPU-a", 700, 81920))};
  EXPECT_EQ(Lines(view).back(), "n 0 - (free) - 0 0 - -");
}

TEST(TopParts, SaysWhatToDoWhereNothingIsShared) {
  EXPECT_THAT(TopPartsText({}), HasSubstr("sharing.ai.centauruscloud.io/mode"));
  EXPECT_THAT(TopPartsText({}), Not(HasSubstr("NODE")));
}

}  // namespace
}  // namespace grus

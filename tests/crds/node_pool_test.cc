// SPDX-License-Identifier: Apache-2.0
#include "crds/types/node_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "tests/crds/schema_walk.h"

namespace api {
namespace {

using kube::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const kube::Kind& TheKind() { return NodePool::ResourceKind(); }
Json SchemaAt(std::initializer_list<std::string_view> fields) { return SchemaOf(TheKind(), fields); }
Json DefaultOf(std::initializer_list<std::string_view> field) { return At(SchemaAt(field), {"default"}); }

constexpr char kSmallest[] = R"({
  "apiVersion":"ai.centauruscloud.io/v1alpha1","kind":"NodePool","metadata":{"name":"a100"},
  "spec":{"nodeSelector":{"nvidia.com/gpu.product":"NVIDIA-A100-SXM4-80GB"}}})";

TEST(NodePool, TheSmallestManifestNamesItsNodesAndNothingElse) {
  const auto pool = kube::Decode<NodePool>(kSmallest);
  ASSERT_TRUE(pool) << pool.error().message();
  EXPECT_EQ((*pool)->spec.node_selector, kube::StringMap({{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"}}));
  EXPECT_EQ(At(SchemaAt({"spec"}), {"required"}), Json::MakeArray({"nodeSelector"}));
  EXPECT_EQ(At(SchemaAt({}), {"required"}), Json::MakeArray({"spec"}));
}

TEST(NodePool, TheSchemasDefaultsAreThoseOfTheTypes) {
  const NodePoolSpec spec;
  EXPECT_EQ(DefaultOf({"spec", "resource"}), Json(spec.resource));
  EXPECT_EQ(DefaultOf({"spec", "placement"}), Json(EnumNames(spec.placement).front()));
  EXPECT_EQ(spec.placement, PoolPlacement::kBinPack);
}

TEST(NodePool, ReasonsAreLegalInACondition) {
  const std::regex pascal("[A-Z][A-Za-z]+");
  for (const std::string_view name : EnumNames(NodePoolReason::kPending)) {
    EXPECT_TRUE(std::regex_match(std::string(name), pascal)) << name;
  }
  EXPECT_EQ(ToString(NodePoolReason::kPending), "Pending");
  EXPECT_EQ(ToString(NodePoolReason::kNotPermitted), "NotPermitted");
  EXPECT_EQ(EnumNames(NodePoolReason::kPending).size(), static_cast<std::size_t>(NodePoolReason::kNotPermitted) + 1);
}

TEST(NodePoolCrd, ASelectorOfNoLabelIsRefused) {
  // It would select all nodes of the cluster.
  EXPECT_EQ(At(SchemaAt({"spec", "nodeSelector"}), {"minProperties"}), Json(1));
}

TEST(NodePoolCrd, TheNameFitsIntoALabelAndIsNotThatOfTheDefaultPool) {
  EXPECT_THAT(RulesOf(SchemaAt({})), HasSubstr("at most " + std::to_string(kMaxPoolName) + " characters"));
  EXPECT_THAT(RulesOf(SchemaAt({})), HasSubstr("must not be \"" + std::string(kDefaultPool) + "\""));
}

TEST(NodePoolCrd, ANewOneIsUnderWayToKstatus) {
  const Json condition = At(DefaultOf({"status"}), {"conditions"}).AsArray()->front();
  EXPECT_EQ(At(condition, {"type"}), Json("Reconciling"));
  EXPECT_EQ(At(condition, {"status"}), Json("True"));
  EXPECT_EQ(At(condition, {"reason"}), Json(ToString(NodePoolReason::kPending)));
}

TEST(NodePoolCrd, EveryListHasALimit) { EXPECT_THAT(FieldsThat(TheKind(), IsListWithoutLimit), IsEmpty()); }

}  // namespace
}  // namespace api

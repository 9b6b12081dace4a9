// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/json_writer.h"

#include <gtest/gtest.h>

namespace kube {
namespace {

struct Leaf {
  std::string text;
  static std::span<const FieldInfo> Fields() {
    static constexpr FieldInfo kFields[] = {Field<&Leaf::text>("text")};
    return kFields;
  }
};

struct Sample {
  std::int32_t always = 0;
  std::int32_t omitted = 0;
  bool flag = false;
  std::string needed;
  std::optional<std::string> maybe_text;
  std::optional<Leaf> maybe_leaf;
  std::optional<std::vector<std::string>> maybe_list;
  Leaf leaf;
  Leaf needed_leaf;
  std::vector<std::string> needed_list;
  static std::span<const FieldInfo> Fields() {
    using T = Sample;
    static constexpr FieldInfo kFields[] = {
        Field<&T::always>("always"),
        Field<&T::omitted>("omitted", {.omit_zero = true}),
        Field<&T::flag>("flag"),
        Field<&T::needed>("needed", {.required = true}),
        Field<&T::maybe_text>("maybeText"),
        Field<&T::maybe_leaf>("maybeLeaf"),
        Field<&T::maybe_list>("maybeList"),
        Field<&T::leaf>("leaf"),
        Field<&T::needed_leaf>("neededLeaf", {.required = true}),
        Field<&T::needed_list>("neededList", {.required = true}),
    };
    return kFields;
  }
};

TEST(JsonWriter, LeavesOutWhatIsEmptyAndNotRequired) {
  EXPECT_EQ(WriteText(Sample()), R"({"always":0,"flag":false,"needed":"","neededLeaf":{},"neededList":[]})");
}

TEST(JsonWriter, WritesWhateverAnOptionalHolds) {
  Sample sample;
  sample.maybe_text = "";
  sample.maybe_leaf.emplace();
  sample.maybe_list.emplace();
  EXPECT_EQ(WriteText(sample), R"({"always":0,"flag":false,"needed":"","maybeText":"","maybeLeaf":{},"maybeList":[],)"
                               R"("neededLeaf":{},"neededList":[]})");
}

TEST(JsonWriter, RepairsHalfCharacters) {
  EXPECT_EQ(WriteText(Leaf{"a\xE2\x82"}), "{\"text\":\"a\xEF\xBF\xBD\xEF\xBF\xBD\"}");
}

}  // namespace
}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/label_selector.h"

#include <gtest/gtest.h>

#include "clientlib/model/json_reader.h"
#include "clientlib/model/json_writer.h"

namespace kube {
namespace {

TEST(LabelSelector, MatchesAsKubernetesDoes) {
  const StringMap labels = {{"app", "bert"}, {"tier", "a"}, {"empty", ""}};
  const std::pair<const char*, bool> kCases[] = {
      {"", true},
      {"app=bert", true},
      {"app==bert", true},
      {"app=other", false},
      {"missing=bert", false},
      {"app!=bert", false},
      {"app!=other", true},
      {"missing!=x", true},
      {"empty=", true},
      {"app=", false},
      {"tier in (a,b)", true},
      {"tier in (b)", false},
      {"missing in (a)", false},
      {"empty in (,a)", true},
      {"tier notin (b,c)", true},
      {"tier notin (a)", false},
      {"missing notin (a)", true},
      {"app", true},
      {"missing", false},
      {"!missing", true},
      {"!app", false},
      {"app=bert,tier in (a),!missing", true},
      {"app=bert,tier in (b)", false},
      {"app=bert,app=other", false},
      {" app = bert , tier in ( a , b ) ", true},
      {"in in (in)", false},
  };
  for (const auto& [text, matches] : kCases) {
    const Result<LabelSelector> selector = ParseLabelSelector(text);
    ASSERT_TRUE(selector) << text << ": " << selector.error().message();
    EXPECT_EQ(selector->Matches(labels), matches) << text;
    const Result<LabelSelector> again = ParseLabelSelector(ToText(*selector));
    ASSERT_TRUE(again) << ToText(*selector);
    EXPECT_EQ(*again, *selector) << text;
  }
}

TEST(LabelSelector, QueryFormIsTheShortOne) {
  LabelSelector selector;
  selector.match_labels = {{"b", "2"}, {"a", "1"}};
  selector.match_expressions = {{"c", SelectorOperator::kIn, {"x", "y"}}, {"d", SelectorOperator::kDoesNotExist, {}}};
  EXPECT_EQ(ToText(selector), "a=1,b=2,c in (x,y),!d");
}

TEST(LabelSelector, RefusesWhatIsNone) {
  for (const char* text : {",", "a,", ",a", "a=b=c", "a in", "a in (", "a in (b", "a in b", "a in (b,(c))", "!", "!a=b",
                           "a b", "a!", "=b", "a=b c", "a in (b) c", "a%", "a=(b)"}) {
    const Result<LabelSelector> selector = ParseLabelSelector(text);
    ASSERT_FALSE(selector) << text;
    EXPECT_EQ(selector.error().code(), ErrorCode::kInvalidArgument);
  }
}

TEST(LabelSelector, SurvivesReadingAndWriting) {
  const std::string text =
      R"({"matchLabels":{"a":"1"},"matchExpressions":[{"key":"b","operator":"NotIn","values":["x"]},)"
      R"({"key":"c","operator":"Exists"}]})";
  const Result<LabelSelector> selector = ReadText<LabelSelector>(text);
  ASSERT_TRUE(selector) << selector.error().message();
  EXPECT_EQ(WriteText(*selector), text);
}

}  // namespace
}  // namespace kube

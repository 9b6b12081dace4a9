// SPDX-License-Identifier: Apache-2.0
#include "controllers/prometheus/query_answer.h"

#include <gmock/gmock.h>

#include <cmath>

namespace grus {
namespace {

using kube::ErrorCode;
using ::testing::HasSubstr;

struct Read {
  kube::Status status;
  std::vector<QuerySample> samples;
};

// The answer, which comes in pieces of so many bytes.
Read In(const std::string& body, std::size_t piece, AnswerLimits limits = {}, AnswerKind kind = AnswerKind::kNow) {
  Read read;
  std::size_t at = 0;
  const ByteSource source = [&]() -> kube::Result<std::string> {
    const std::string next = body.substr(std::min(at, body.size()), piece);
    at += next.size();
    return next;
  };
  read.status = ReadAnswer(
      source, limits, [&](const QuerySample& sample) { read.samples.push_back(sample); }, kind);
  return read;
}

constexpr char kTwo[] =
    R"({"warnings":["a\u0020b"],"data":{"stats":{"result":[1,2,{"value":[1,"9"]}]},"result":[)"
    R"({"metric":{"pod":"a","__name__":"x"},"value":[1700000000.5,"12.5"]},)"
    R"({"value":[1,"NaN"],"histogram":[1,{"count":"1"}],"metric":{"pod":"b \"q\" \u00e9"}}],"resultType":"vector"},"status":"success"})";

TEST(ReadAnswer, GivesEachSeriesWhereverTheAnswerIsCut) {
  for (std::size_t piece = 1; piece < sizeof kTwo; ++piece) {
    const Read read = In(kTwo, piece);
    ASSERT_TRUE(read.status) << read.status.error().message();
    ASSERT_EQ(read.samples.size(), 2U) << piece;
    EXPECT_THAT(read.samples[0].labels, ::testing::ElementsAre(std::pair<std::string, std::string>("pod", "a"),
                                                               std::pair<std::string, std::string>("__name__", "x")));
    EXPECT_EQ(read.samples[0].value, 12.5);
    EXPECT_EQ(read.samples[0].time, 1700000000.5);
    EXPECT_EQ(read.samples[1].labels[0].second, "b \"q\" \xc3\xa9");
    EXPECT_TRUE(std::isnan(read.samples[1].value));
  }
}

TEST(ReadAnswer, SaysWhatIsCutOff) {
  const std::string body = kTwo;
  for (std::size_t size = 0; size < body.size(); ++size) {
    const Read read = In(body.substr(0, size), 7);
    ASSERT_FALSE(read.status) << size;
    EXPECT_EQ(read.status.error().code(), ErrorCode::kDecode) << size;
  }
}

TEST(ReadAnswer, IsBounded) {
  EXPECT_EQ(In(kTwo, 10, {.bytes = 100}).status.error().code(), ErrorCode::kTooLarge);
  const Read read = In(kTwo, 10, {.series = 1});
  EXPECT_EQ(read.status.error().code(), ErrorCode::kTooLarge);
  EXPECT_EQ(read.samples.size(), 1U);
  const std::string deep = R"({"status":"success","data":)" + std::string(100'000, '[');
  EXPECT_EQ(In(deep, 1000).status.error().code(), ErrorCode::kDecode);
}

TEST(ReadAnswer, TakesOnlyNumbersOfNow) {
  const std::string matrix =
      R"({"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"2"]]}]}})";
  EXPECT_THAT(In(matrix, 9).status.error().message(), HasSubstr("a matrix"));
  EXPECT_THAT(In(R"({"status":"success","data":{"resultType":"string","result":[1,"x"]}})", 9).status.error().message(),
              HasSubstr("a string"));
  const Read scalar = In(R"({"status":"success","data":{"resultType":"scalar","result":[1.5,"7"]}})", 3);
  ASSERT_TRUE(scalar.status);
  ASSERT_EQ(scalar.samples.size(), 1U);
  EXPECT_EQ(scalar.samples[0].value, 7);
}

TEST(ReadAnswer, OfARangeGivesEachMoment) {
  const std::string matrix =
      R"({"status":"success","data":{"resultType":"matrix","result":[)"
      R"({"metric":{"a":"b"},"values":[[1,"2"],[2.5,"NaN"],[3,"4"]],"histograms":[[1,{"count":"9"}]]},{"metric":{},"values":[]}]}})";
  for (std::size_t piece = 1; piece < 50; ++piece) {
    const Read read = In(matrix, piece, {}, AnswerKind::kRange);
    ASSERT_TRUE(read.status) << read.status.error().message();
    ASSERT_EQ(read.samples.size(), 3U);
    EXPECT_EQ(read.samples[1].time, 2.5);
    EXPECT_TRUE(std::isnan(read.samples[1].value));
    EXPECT_EQ(read.samples[2].value, 4);
    EXPECT_EQ(read.samples[2].labels[0].second, "b");
  }
  EXPECT_THAT(In(kTwo, 9, {}, AnswerKind::kRange).status.error().message(), HasSubstr("not numbers of several times"));
}

TEST(ReadAnswer, ReadsTensOfThousandsOfSeries) {
  std::string body = R"({"status":"success","data":{"resultType":"vector","result":[)";
  for (int i = 0; i < 50'000; ++i) {
    body += (i ? "," : "") + std::string(R"({"metric":{"namespace":"team","pod":"p)") + std::to_string(i) +
            R"("},"value":[1700000000,")" + std::to_string(i) + "\"]}";
  }
  const Read read = In(body + "]}}", 64 << 10);
  ASSERT_TRUE(read.status);
  ASSERT_EQ(read.samples.size(), 50'000U);
  EXPECT_EQ(read.samples.back().value, 49'999);
}

TEST(ReadAnswer, AnErrorOfTheSourceIsTheAnswer) {
  int reads = 0;
  const ByteSource source = [&]() -> kube::Result<std::string> {
    if (++reads == 1) return std::string(R"({"status":"success",)");
    return kube::Error(ErrorCode::kTimeout, "it takes too long");
  };
  EXPECT_EQ(ReadAnswer(source, {}, [](const QuerySample&) {}).error().code(), ErrorCode::kTimeout);
}

}  // namespace
}  // namespace grus

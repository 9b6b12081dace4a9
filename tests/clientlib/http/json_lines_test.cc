// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/json_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace kube {
namespace {

using ::testing::ElementsAre;

// All lines of `text` when it comes in chunks of `chunk_bytes`.
std::vector<std::string> Split(const std::string& text, std::size_t chunk_bytes) {
  JsonLines lines;
  std::vector<std::string> got;
  for (std::size_t at = 0; at < text.size(); at += chunk_bytes) {
    EXPECT_TRUE(lines.Append(text.substr(at, chunk_bytes)));
    while (auto line = lines.Next()) got.emplace_back(*line);
  }
  return got;
}

TEST(JsonLines, L14ChunkingDoesNotMatter) {
  const std::string text = "{\"a\":1}\n{}\n\n\r\n{\"long\":\"0123456789\"}\r\nunfinished";
  for (std::size_t bytes = 1; bytes <= text.size(); ++bytes) {
    EXPECT_THAT(Split(text, bytes), ElementsAre("{\"a\":1}", "{}", "{\"long\":\"0123456789\"}")) << bytes;
  }
}

TEST(JsonLines, WholeLinesAreViewsIntoTheChunk) {
  std::string chunk = "first line that is too long for a small string\nsecond\n";
  const char* data = chunk.data();
  JsonLines lines;

  ASSERT_TRUE(lines.Append(std::move(chunk)));

  EXPECT_EQ(lines.Next()->data(), data);
  EXPECT_EQ(*lines.Next(), "second");
  EXPECT_FALSE(lines.Next());
}

TEST(JsonLines, KnowsOfAPartialLine) {
  JsonLines lines;
  ASSERT_TRUE(lines.Append("whole\npar"));
  ASSERT_TRUE(lines.Next());
  ASSERT_FALSE(lines.Next());
  EXPECT_TRUE(lines.has_partial_line());

  ASSERT_TRUE(lines.Append("tial\n"));
  EXPECT_EQ(*lines.Next(), "partial");
  EXPECT_FALSE(lines.has_partial_line());
  EXPECT_FALSE(lines.Next());
}

TEST(JsonLines, LineOverTheLimitIsTooLarge) {
  JsonLines lines(10);
  ASSERT_TRUE(lines.Append("12345\n123456"));
  while (lines.Next()) {
  }

  EXPECT_EQ(lines.Append("78901").error().code(), ErrorCode::kTooLarge);
}

TEST(JsonLines, NoLineOfAChunkMayBeOverTheLimit) {
  for (const char* chunk : {"12345678901\n", "1\n12345678901\n2\n", "1\n\n12345678901", "1234567890\n12345678901"}) {
    EXPECT_EQ(JsonLines(10).Append(chunk).error().code(), ErrorCode::kTooLarge) << chunk;
  }
  EXPECT_TRUE(JsonLines(10).Append("1234567890\n1234567890\n\n1234567890"));
}

TEST(JsonLines, LineAtTheLimitPasses) {
  JsonLines lines(10);
  ASSERT_TRUE(lines.Append("123456"));
  ASSERT_FALSE(lines.Next());
  ASSERT_TRUE(lines.Append("7890\nx"));

  EXPECT_EQ(*lines.Next(), "1234567890");
}

TEST(JsonLines, L14LineOfManyMegabytesPasses) {
  const std::string line(8UL << 20, 'x');
  JsonLines lines;
  std::string got;
  for (std::size_t at = 0; at < line.size(); at += 16384) {
    ASSERT_TRUE(lines.Append(line.substr(at, 16384)));
    ASSERT_FALSE(lines.Next());
  }
  ASSERT_TRUE(lines.Append("\n"));

  EXPECT_EQ(*lines.Next(), line);
}

}  // namespace
}  // namespace kube

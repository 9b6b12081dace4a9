// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/token_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/kit/manual_clock.h"
#include "tests/kit/temp_dir.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::ManualClock;
using testing::TempDir;

std::string HeaderOf(TokenSource& source) {
  const Result<std::string> header = source.AuthorizationHeader();
  return header ? *header : "error: " + header.error().message();
}

TEST(TokenSource, FixedIdentities) {
  const ManualClock clock;
  ClientConfig none, token, basic, certificate;
  token.token = "abc";
  basic.username = "me";
  basic.password = "p:w";
  certificate.cert_pem = certificate.key_pem = "pem";

  EXPECT_EQ(HeaderOf(*MakeTokenSource(none, clock)), "");
  EXPECT_EQ(HeaderOf(*MakeTokenSource(token, clock)), "Bearer abc");
  EXPECT_EQ(HeaderOf(*MakeTokenSource(basic, clock)), "Basic bWU6cDp3");
  EXPECT_EQ(HeaderOf(*MakeTokenSource(certificate, clock)), "");
}

class TokenFileTest : public ::testing::Test {
 protected:
  std::unique_ptr<TokenSource> Source() {
    ClientConfig config;
    config.token = "fixed";
    config.token_file = folder_.path("token");
    return MakeTokenSource(config, clock_);
  }
  void Write(const char* token) { folder_.Write("token", token); }

  const TempDir folder_;
  ManualClock clock_;
};

TEST_F(TokenFileTest, WinsOverAFixedTokenAndIsTrimmed) {
  Write(" one\n");
  EXPECT_EQ(HeaderOf(*Source()), "Bearer one");
}

TEST_F(TokenFileTest, A1IsReadAgainWithinAMinuteButNotForEachRequest) {
  Write("one");
  auto source = Source();
  ASSERT_EQ(HeaderOf(*source), "Bearer one");
  Write("two");

  EXPECT_EQ(HeaderOf(*source), "Bearer one");
  clock_.Advance(60s);
  EXPECT_EQ(HeaderOf(*source), "Bearer two");
}

TEST_F(TokenFileTest, A1OldTokenStaysWhenAReadFails) {
  Write("one");
  auto source = Source();
  ASSERT_EQ(HeaderOf(*source), "Bearer one");

  for (const char* broken : {"", "  \n", "two words"}) {
    Write(broken);
    clock_.Advance(60s);
    EXPECT_EQ(HeaderOf(*source), "Bearer one") << broken;
  }
  std::filesystem::remove(folder_.path("token"));
  clock_.Advance(60s);
  EXPECT_EQ(HeaderOf(*source), "Bearer one");

  Write("three");
  clock_.Advance(10s);
  EXPECT_EQ(HeaderOf(*source), "Bearer three");
}

TEST_F(TokenFileTest, WithoutAnyTokenThereIsAnErrorThatNamesTheFile) {
  EXPECT_THAT(HeaderOf(*Source()), HasSubstr(folder_.path("token")));
}

TEST_F(TokenFileTest, A1RefusedTokenIsReadAgainAtOnce) {
  Write("one");
  auto source = Source();
  ASSERT_EQ(HeaderOf(*source), "Bearer one");
  Write("two");
  clock_.Advance(1s);

  source->Refused(clock_.Now());

  EXPECT_EQ(HeaderOf(*source), "Bearer two");
}

TEST_F(TokenFileTest, A1RefusalOfAnOlderTokenChangesNothing) {
  Write("one");
  auto source = Source();
  ASSERT_EQ(HeaderOf(*source), "Bearer one");
  const TimePoint sent = clock_.Now();
  clock_.Advance(60s);
  Write("two");
  ASSERT_EQ(HeaderOf(*source), "Bearer two");
  Write("three");

  source->Refused(sent);

  EXPECT_EQ(HeaderOf(*source), "Bearer two");
}

}  // namespace
}  // namespace kube

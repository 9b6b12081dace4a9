// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/exec_credential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "clientlib/model/json.h"
#include "tests/kit/certificates.h"
#include "tests/kit/manual_clock.h"
#include "tests/kit/temp_dir.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using testing::CertifiedKey;
using ::testing::HasSubstr;
using testing::ManualClock;
using ::testing::Not;
using testing::TempDir;
using testing::TestCa;

constexpr char kV1[] = "client.authentication.k8s.io/v1";

std::string CredentialText(Json status) {
  return ToText(Json::MakeObject({{"apiVersion", kV1}, {"kind", "ExecCredential"}, {"status", std::move(status)}}));
}

TEST(ParseExecCredential, A2TakesTokenCertificateAndExpiry) {
  const CertifiedKey key = TestCa().Issue();

  const Result<ExecCredential> got =
      ParseExecCredential(CredentialText(Json::MakeObject({{"token", "abc"},
                                                           {"clientCertificateData", key.cert_pem},
                                                           {"clientKeyData", key.key_pem},
                                                           {"expirationTimestamp", "1970-01-02T00:00:00Z"}})),
                          kV1);

  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(got->token, "abc");
  EXPECT_EQ(got->certificate, (ClientCertificate{key.cert_pem, key.key_pem}));
  EXPECT_EQ(got->expires_at, WallTime(24h));
}

TEST(ParseExecCredential, A2RefusesHalfOrForeignCredentials) {
  const CertifiedKey key = TestCa().Issue();
  struct Case {
    std::string text;
    const char* want;
  };
  for (const Case& c : {
           Case{"s3cret", "not print valid JSON"},
           Case{"[]", "not print an ExecCredential"},
           Case{R"({"kind":"Pod","s3cret":1})", "not print an ExecCredential"},
           Case{R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})",
                "another apiVersion"},
           Case{CredentialText(Json()), "neither a token nor a certificate"},
           Case{CredentialText(Json::MakeObject({{"token", ""}})), "neither a token nor a certificate"},
           Case{CredentialText(Json::MakeObject({{"token", "s3cret\r\nX: y"}})), "control character"},
           Case{CredentialText(Json::MakeObject({{"clientCertificateData", key.cert_pem}})), "without its key"},
           Case{CredentialText(Json::MakeObject({{"clientKeyData", "s3cret"}, {"token", "t"}})), "without its key"},
           Case{
               CredentialText(Json::MakeObject({{"clientCertificateData", key.cert_pem}, {"clientKeyData", "s3cret"}})),
               "not a PEM private key"},
           Case{CredentialText(Json::MakeObject({{"token", "s3cret"}, {"expirationTimestamp", "soon"}})), "RFC 3339"},
       }) {
    const Result<ExecCredential> got = ParseExecCredential(c.text, kV1);
    ASSERT_FALSE(got) << c.text;
    EXPECT_EQ(got.error().code(), ErrorCode::kDecode);
    EXPECT_THAT(got.error().message(), AllOf(HasSubstr(c.want), Not(HasSubstr("s3cret"))));
  }
}

TEST(ExecInfo, A2TellsOfTheClusterOnlyIfAsked) {
  ClientConfig config;
  config.server = "https://k8s";
  config.ca_pem = "ca";
  config.exec.emplace();
  config.exec->api_version = kV1;
  EXPECT_EQ(ExecInfo(config), R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
                              R"("spec":{"interactive":false}})");

  config.exec->provide_cluster_info = true;

  EXPECT_EQ(ExecInfo(config), R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",)"
                              R"("spec":{"interactive":false,"cluster":{"server":"https://k8s",)"
                              R"("certificate-authority-data":"Y2E="}}})");
}

// A plugin that counts its runs in a file and prints the credential that the test wrote.
class ExecCredentialTest : public ::testing::Test {
 protected:
  ExecCredentialTest() {
    config_.exec.emplace();
    config_.exec->api_version = kV1;
    config_.exec->command = folder_.Write("plugin",
                                          "#!/bin/sh\n"
                                          "cd " +
                                              folder_.path() +
                                              " && echo run >> runs\n"
                                              "if [ -e hangs ]; then read never < hangs; fi\n"
                                              "printf %s \"$KUBERNETES_EXEC_INFO\" > info\n"
                                              "cat answer\n");
    std::filesystem::permissions(config_.exec->command, std::filesystem::perms::owner_all);
  }
  void Answer(Json status) { folder_.Write("answer", CredentialText(std::move(status))); }
  // The next run hangs until somebody writes to this pipe, or it is killed.
  void LetPluginHang() { ASSERT_EQ(mkfifo(folder_.path("hangs").c_str(), 0600), 0); }
  void LetPluginGoOn() {
    std::ofstream(folder_.path("hangs")) << "go on\n";
    std::filesystem::remove(folder_.path("hangs"));
  }
  // Asks until the header is `want`; the last answer if that does not come within 20 s.
  static std::string Await(ExecCredentialSource& source, const std::string& want) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    for (;;) {
      const Result<std::string> header = source.AuthorizationHeader();
      const std::string got = header ? *header : header.error().message();
      if (got == want || std::chrono::steady_clock::now() > until) return got;
      std::this_thread::yield();
    }
  }
  // Waits until the plugin has started that often; false after 20 s.
  bool AwaitRuns(long count) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (Runs() < count && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    return Runs() == count;
  }
  std::string Content(const char* name) {
    std::ifstream file(folder_.path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  long Runs() {
    const std::string runs = Content("runs");
    return std::count(runs.begin(), runs.end(), '\n');
  }

  const TempDir folder_;
  ManualClock clock_;
  ClientConfig config_;
};

TEST_F(ExecCredentialTest, A2RunsOnceForManyThreads) {
  Answer(Json::MakeObject({{"token", "one"}}));
  const auto source = MakeTokenSource(config_, clock_);

  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(*source->AuthorizationHeader(), "Bearer one"); });
  }
  threads.clear();

  EXPECT_EQ(Runs(), 1);
  EXPECT_THAT(Content("info"), HasSubstr("\"interactive\":false"));
}

TEST_F(ExecCredentialTest, A2RunsAgainBeforeTheCredentialEnds) {
  // The manual clock begins fifty years of 365 days after 1970.
  Answer(Json::MakeObject({{"token", "one"}, {"expirationTimestamp", "2019-12-20T01:00:00Z"}}));
  ASSERT_EQ(clock_.WallNow(), WallTime(std::chrono::sys_days(std::chrono::year(2019) / 12 / 20)));
  ExecCredentialSource source(config_, clock_);
  ASSERT_EQ(*source.AuthorizationHeader(), "Bearer one");
  Answer(Json::MakeObject({{"token", "two"}}));

  clock_.Advance(57min);
  EXPECT_EQ(*source.AuthorizationHeader(), "Bearer one");
  EXPECT_EQ(Runs(), 1);
  clock_.Advance(1min);
  EXPECT_EQ(Await(source, "Bearer two"), "Bearer two");
  EXPECT_EQ(Runs(), 2);
}

TEST_F(ExecCredentialTest, A2AValidTokenIsHandedOutWhileThePluginHangs) {
  Answer(Json::MakeObject({{"token", "one"}, {"expirationTimestamp", "2019-12-20T01:00:00Z"}}));
  ExecCredentialSource source(config_, clock_, 50ms);
  ASSERT_EQ(*source.AuthorizationHeader(), "Bearer one");
  LetPluginHang();
  Answer(Json::MakeObject({{"token", "two"}}));
  clock_.Advance(59min);

  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(*source.AuthorizationHeader(), "Bearer one"); });
  }
  threads.clear();
  ASSERT_TRUE(AwaitRuns(2)) << "one run for all";
  clock_.Advance(59s);
  EXPECT_EQ(*source.AuthorizationHeader(), "Bearer one") << "to its last second";

  LetPluginGoOn();
  EXPECT_EQ(Await(source, "Bearer two"), "Bearer two");
  EXPECT_EQ(Runs(), 2);
}

// Renewing the lease takes a token, too, and must not wait for a minute.
TEST_F(ExecCredentialTest, A2WithoutAValidTokenTheWaitForAPluginThatHangsIsBounded) {
  Answer(Json::MakeObject({{"token", "one"}}));
  ExecCredentialSource source(config_, clock_, 50ms);
  ASSERT_EQ(*source.AuthorizationHeader(), "Bearer one");
  LetPluginHang();
  source.Refused(clock_.Now());

  for (int i = 0; i < 2; ++i) {
    const Result<std::string> header = source.AuthorizationHeader();
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().code(), ErrorCode::kTimeout);
    EXPECT_THAT(header.error().message(), HasSubstr("still runs"));
  }
  EXPECT_TRUE(AwaitRuns(2));
}  // The plugin ends with the source: otherwise this would take as long as a run may.

TEST_F(ExecCredentialTest, A2AFailedRunCostsNoTokenThatIsStillValid) {
  Answer(Json::MakeObject({{"token", "one"}, {"expirationTimestamp", "2019-12-20T01:00:00Z"}}));
  ExecCredentialSource source(config_, clock_);
  ASSERT_EQ(*source.AuthorizationHeader(), "Bearer one");
  folder_.Write("answer", "no credential");

  clock_.Advance(59min + 55s);
  EXPECT_EQ(*source.AuthorizationHeader(), "Bearer one");
  EXPECT_EQ(Runs(), 2);
  clock_.Advance(5s);
  EXPECT_THAT(source.AuthorizationHeader().error().message(), HasSubstr("did not print valid JSON"));
}

TEST_F(ExecCredentialTest, A2RefusedCredentialIsDroppedUnlessItIsNewer) {
  Answer(Json::MakeObject({{"token", "one"}}));
  ExecCredentialSource source(config_, clock_);
  ASSERT_EQ(*source.AuthorizationHeader(), "Bearer one");
  const TimePoint sent = clock_.Now();
  Answer(Json::MakeObject({{"token", "two"}}));
  clock_.Advance(1s);

  source.Refused(sent);
  EXPECT_EQ(*source.AuthorizationHeader(), "Bearer two");
  source.Refused(sent);  // The second of two requests that were refused together.
  EXPECT_EQ(*source.AuthorizationHeader(), "Bearer two");
  EXPECT_EQ(Runs(), 2);
}

TEST_F(ExecCredentialTest, FailedRunIsNotRepeatedAtOnce) {
  ExecCredentialSource source(config_, clock_);  // There is no answer, so the plugin fails.

  EXPECT_THAT(source.AuthorizationHeader().error().message(),
              AllOf(HasSubstr("exec credential plugin: "), HasSubstr("failed with exit status 1")));
  EXPECT_FALSE(source.AuthorizationHeader());
  EXPECT_EQ(Runs(), 1);

  Answer(Json::MakeObject({{"token", "one"}}));
  clock_.Advance(5s);
  EXPECT_EQ(*source.AuthorizationHeader(), "Bearer one");
}

TEST_F(ExecCredentialTest, CertificateIsForTheTransport) {
  const CertifiedKey key = TestCa().Issue();
  Answer(Json::MakeObject({{"clientCertificateData", key.cert_pem}, {"clientKeyData", key.key_pem}}));
  ExecCredentialSource source(config_, clock_);

  EXPECT_EQ(*source.AuthorizationHeader(), "");
  EXPECT_EQ(**source.PluginCertificate(), (ClientCertificate{key.cert_pem, key.key_pem}));
  EXPECT_EQ(Runs(), 1);
}

TEST_F(ExecCredentialTest, MissingPluginShowsTheInstallHint) {
  config_.exec->command = "no-such-plugin-of-grus";
  config_.exec->install_hint = "get it from the intranet";

  EXPECT_THAT(ExecCredentialSource(config_, clock_).AuthorizationHeader().error().message(),
              AllOf(HasSubstr("no-such-plugin-of-grus: cannot start"), HasSubstr("get it from the intranet")));
}

TEST_F(ExecCredentialTest, A2PluginThatNeedsATerminalIsRefused) {
  config_.exec->interactive_mode = "Always";

  EXPECT_THAT(ExecCredentialSource(config_, clock_).AuthorizationHeader().error().message(),
              HasSubstr("needs a terminal"));
  EXPECT_EQ(Runs(), 0);
}

TEST_F(ExecCredentialTest, A2StaticClientCertificateKeepsThePluginFromRunning) {
  config_.cert_pem = config_.key_pem = "pem";

  EXPECT_EQ(*MakeTokenSource(config_, clock_)->AuthorizationHeader(), "");
  EXPECT_EQ(Runs(), 0);
}

}  // namespace
}  // namespace kube

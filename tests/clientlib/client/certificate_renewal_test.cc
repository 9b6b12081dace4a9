// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/certificate_renewal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "clientlib/client/connection.h"
#include "clientlib/testing/fake_clock.h"
#include "tests/kit/certificates.h"
#include "tests/kit/temp_dir.h"
#include "tests/kit/test_server.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::CertifiedKey;
using testing::FakeClock;
using ::testing::HasSubstr;
using testing::TempDir;
using testing::TestCa;
using testing::TestConnection;
using testing::TestRequest;
using testing::TestServer;

// A server that wants client certificates of `client_ca_`, and a connection whose certificates are files.
class CertificateRenewalTest : public ::testing::Test {
 protected:
  CertificateRenewalTest() : server_(MakeServer(server_ca_)) {
    dir_.Write("ca.crt", server_ca_.cert_pem());
    WriteClient(client_ca_.Issue());
    Connect();
  }

  std::unique_ptr<TestServer> MakeServer(const TestCa& ca) const {
    const CertifiedKey key = ca.Issue();
    return std::make_unique<TestServer>(
        TestServer::Options{.cert_pem = key.cert_pem, .key_pem = key.key_pem, .client_ca_pem = client_ca_.cert_pem()},
        [](const TestRequest&, TestConnection& connection) { connection.Respond(200, "{}"); });
  }
  void WriteClient(const CertifiedKey& key) const {
    dir_.Write("client.crt", key.cert_pem);
    dir_.Write("client.key", key.key_pem);
  }
  void Connect(const std::string& user = "{client-certificate: client.crt, client-key: client.key}") {
    const std::string path = dir_.Write("config",
                                        "apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
                                        "clusters: [{name: c, cluster: {server: \"" +
                                            server_->url() +
                                            "\", certificate-authority: ca.crt}}]\n"
                                            "users: [{name: u, user: " +
                                            user +
                                            "}]\n"
                                            "contexts: [{name: dev, context: {cluster: c, user: u}}]\n");
    Result<std::unique_ptr<Connection>> made = kube::Connect({.kubeconfig = path}, clock_);
    ASSERT_TRUE(made) << made.error().message();
    connection_ = *std::move(made);
  }
  // "ok", or why a request failed.
  std::string Ask() {
    const Result<std::string> answer = connection_->client->GetRaw("/version");
    return answer ? "ok" : answer.error().message();
  }

  // The requests end in real time; what is due every few minutes is up to the test.
  FakeClock clock_;
  const TempDir dir_;
  const TestCa server_ca_{"server CA"}, client_ca_{"client CA"};
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Connection> connection_;
};

TEST_F(CertificateRenewalTest, A3AReplacedClientCertificateGetsNewConnectionsWithinFiveMinutes) {
  ASSERT_EQ(Ask(), "ok");
  ASSERT_EQ(server_->connections(), 1);
  WriteClient(client_ca_.Issue());

  clock_.Advance(299s);
  EXPECT_EQ(Ask(), "ok");
  EXPECT_EQ(server_->connections(), 1);
  clock_.Advance(1s);
  EXPECT_EQ(Ask(), "ok");
  EXPECT_EQ(server_->connections(), 2);
}

TEST_F(CertificateRenewalTest, A3FilesThatDidNotChangeKeepTheConnections) {
  ASSERT_EQ(Ask(), "ok");
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(5min);
    EXPECT_EQ(Ask(), "ok");
  }
  EXPECT_EQ(server_->connections(), 1);
}

TEST_F(CertificateRenewalTest, A3AReplacedCaIsTrustedAndTheOldOneIsNot) {
  ASSERT_EQ(Ask(), "ok");
  const TestCa next("next CA");
  dir_.Write("ca.crt", next.cert_pem());
  clock_.Advance(5min);

  EXPECT_THAT(Ask(), HasSubstr("certificate"));

  // The cluster follows.
  dir_.Write("ca.crt", server_ca_.cert_pem() + next.cert_pem());
  clock_.Advance(5min);
  EXPECT_EQ(Ask(), "ok");
}

TEST_F(CertificateRenewalTest, A3FilesThatCannotBeUsedLeaveTheOldOnesAndAreReadAgainSoon) {
  ASSERT_EQ(Ask(), "ok");
  const CertifiedKey first = client_ca_.Issue(), next = client_ca_.Issue();
  struct Case {
    const char *file, *content;
  };
  for (const Case& c : {Case{"ca.crt", ""}, Case{"ca.crt", "-----BEGIN CERTIFICATE-----\nhalf"}, Case{"client.crt", ""},
                        Case{"client.key", ""}, Case{"client.key", first.key_pem.c_str()}}) {
    dir_.Write("ca.crt", server_ca_.cert_pem());
    WriteClient(next);
    dir_.Write(c.file, c.content);
    clock_.Advance(5min);
    EXPECT_EQ(Ask(), "ok") << c.file << " " << c.content;
    EXPECT_EQ(server_->connections(), 1);
  }

  dir_.Write("client.key", next.key_pem);
  clock_.Advance(1min);
  EXPECT_EQ(Ask(), "ok");
  EXPECT_EQ(server_->connections(), 2);
}

TEST_F(CertificateRenewalTest, A3ACertificateOfAnExecPluginIsPresentedAndReplaced) {
  WriteClient(client_ca_.Issue());
  const std::string program =
      dir_.Write("plugin",
                 "#!/bin/sh\ncd \"$(dirname \"$0\")\"\nesc() { awk '{printf \"%s\\\\n\", $0}' \"$1\"; }\n"
                 "printf "
                 "'{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{'\n"
                 "printf '\"expirationTimestamp\":\"2026-01-02T04:00:00Z\",'\n"
                 "printf '\"clientCertificateData\":\"%s\",\"clientKeyData\":\"%s\"}}' \"$(esc client.crt)\" \"$(esc "
                 "client.key)\"\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  Connect("{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./plugin, interactiveMode: Never}}");

  EXPECT_EQ(Ask(), "ok");
  EXPECT_EQ(Ask(), "ok");
  EXPECT_EQ(server_->connections(), 1);

  WriteClient(client_ca_.Issue());
  clock_.Advance(1h);  // The credential has ended.
  EXPECT_EQ(Ask(), "ok");
  EXPECT_EQ(server_->connections(), 2);
}

}  // namespace
}  // namespace kube

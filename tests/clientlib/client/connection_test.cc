// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/testing/fake_clock.h"
#include "tests/kit/temp_dir.h"
#include "tests/kit/test_server.h"

namespace kube {
namespace {

using ::testing::HasSubstr;

class ConnectTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Connection>> ConnectWith(const std::string& cluster, ConnectOptions options = {}) {
    folder_.Write("config",
                  "apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
                  "clusters: [{name: c, cluster: {" +
                      cluster +
                      "}}]\n"
                      "users: [{name: u, user: {token: secret}}]\n"
                      "contexts: [{name: dev, context: {cluster: c, user: u, namespace: team-a}}]\n");
    options.kubeconfig = folder_.path("config");
    return Connect(options, clock_);
  }

  testing::FakeClock clock_;
  const testing::TempDir folder_;
};

TEST_F(ConnectTest, TakesServerAndNamespaceFromTheKubeconfig) {
  const auto connection = ConnectWith(R"(server: "http://127.0.0.1:1")");
  ASSERT_TRUE(connection) << connection.error().message();
  EXPECT_EQ((*connection)->config.server, "http://127.0.0.1:1");
  EXPECT_EQ((*connection)->config.default_namespace, "team-a");
  EXPECT_NE((*connection)->tokens, nullptr);
  EXPECT_NE((*connection)->client, nullptr);
  EXPECT_NE((*connection)->lease_client, nullptr);
}

TEST_F(ConnectTest, E3LeaseRequestsHaveAConnectionOfTheirOwn) {
  testing::TestServer server({}, [](const auto&, testing::TestConnection& c) { c.Respond(200, "{}"); });
  const auto connection = ConnectWith("server: \"" + server.url() + "\"");
  ASSERT_TRUE(connection) << connection.error().message();
  ASSERT_TRUE((*connection)->client->GetRaw("/version"));
  ASSERT_TRUE((*connection)->lease_client->GetRaw("/version"));
  ASSERT_TRUE((*connection)->lease_client->GetRaw("/version"));
  EXPECT_EQ(server.connections(), 2);
}

TEST_F(ConnectTest, AnAnswerBeyondTheCallersLimitIsTooLarge) {
  testing::TestServer server({},
                             [](const auto&, testing::TestConnection& c) { c.Respond(200, std::string(101, ' ')); });
  const auto unlimited = ConnectWith("server: \"" + server.url() + "\"");
  EXPECT_TRUE((*unlimited)->client->GetRaw("/version"));
  const auto limited = ConnectWith("server: \"" + server.url() + "\"", {.body_limit = 100});
  const Result<std::string> refused = (*limited)->client->GetRaw("/version");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kTooLarge);
}

TEST_F(ConnectTest, AMissingFileIsNamed) {
  const auto connection = Connect({.kubeconfig = "/nowhere/config"}, clock_);
  ASSERT_FALSE(connection);
  EXPECT_THAT(connection.error().message(), HasSubstr("/nowhere/config"));
}

TEST_F(ConnectTest, AnErrorOfTheTransportNamesTheKubeconfigAndItsContext) {
  const auto connection = ConnectWith(R"(server: "ftp://127.0.0.1")");
  ASSERT_FALSE(connection);
  EXPECT_THAT(connection.error().message(), HasSubstr(folder_.path("config")));
}

}  // namespace
}  // namespace kube

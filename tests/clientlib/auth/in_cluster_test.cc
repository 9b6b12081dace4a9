// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/in_cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/kit/certificates.h"
#include "tests/kit/environment.h"
#include "tests/kit/temp_dir.h"

namespace kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScopedVariable;
using testing::TempDir;
using testing::TestCa;

class InClusterTest : public ::testing::Test {
 protected:
  InClusterTest() {
    root_.Write("ca.crt", ca_.cert_pem());
    root_.Write("token", "s3cret\n");
    root_.Write("namespace", "team-a");
  }

  const TestCa ca_;
  const TempDir root_;
  const ScopedVariable host_{"KUBERNETES_SERVICE_HOST", "10.0.0.1"};
  const ScopedVariable port_{"KUBERNETES_SERVICE_PORT", "443"};
};

TEST_F(InClusterTest, A1ReadsEnvironmentAndMountedFiles) {
  const Result<ClientConfig> config = LoadInCluster(root_.path());

  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->server, "https://10.0.0.1:443");
  EXPECT_EQ(config->ca_pem, ca_.cert_pem());
  EXPECT_EQ(config->ca_file, root_.path("ca.crt"));
  EXPECT_EQ(config->token_file, root_.path("token"));
  EXPECT_EQ(config->default_namespace, "team-a");
  EXPECT_THAT(Describe(*config), Not(HasSubstr("s3cret")));
}

TEST_F(InClusterTest, Ipv6HostGetsBrackets) {
  const ScopedVariable host("KUBERNETES_SERVICE_HOST", "fd00::1");

  EXPECT_EQ(LoadInCluster(root_.path())->server, "https://[fd00::1]:443");
}

TEST_F(InClusterTest, A1MissingCaOrTokenIsAnError) {
  for (const char* file : {"ca.crt", "token"}) {
    const TempDir root;
    if (file != std::string("ca.crt")) root.Write("ca.crt", ca_.cert_pem());
    if (file != std::string("token")) root.Write("token", "t");

    const Result<ClientConfig> config = LoadInCluster(root.path());

    ASSERT_FALSE(config) << file;
    EXPECT_THAT(config.error().message(), HasSubstr(root.path(file))) << file;
  }
}

TEST_F(InClusterTest, WithoutNamespaceFileTheDefaultStands) {
  std::filesystem::remove(root_.path("namespace"));

  EXPECT_EQ(LoadInCluster(root_.path())->default_namespace, "default");
}

TEST_F(InClusterTest, OutsideAPodIsAnError) {
  const ScopedVariable host("KUBERNETES_SERVICE_HOST", nullptr);

  EXPECT_FALSE(IsInCluster());
  EXPECT_THAT(LoadInCluster(root_.path()).error().message(), HasSubstr("does not run in a pod"));
}

}  // namespace
}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "clientlib/auth/tls_material.h"
#include "tests/kit/certificates.h"
#include "tests/kit/environment.h"
#include "tests/kit/temp_dir.h"

namespace kube {
namespace {

using ::testing::AllOf;
using testing::CertifiedKey;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using testing::ScopedVariable;
using testing::TempDir;
using testing::TestCa;

// A kubeconfig of one cluster, user and context; `cluster` and `user` are YAML flow maps.
std::string Simple(const std::string& cluster, const std::string& user) {
  return "apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
         "contexts: [{name: dev, context: {cluster: c, user: u, namespace: team-a}}]\n"
         "clusters: [{name: c, cluster: " +
         cluster +
         "}]\n"
         "users: [{name: u, user: " +
         user + "}]\n";
}

class KubeconfigTest : public ::testing::Test {
 protected:
  Result<ClientConfig> Load(const std::string& text, const std::string& context = {}) {
    return LoadKubeconfig({.path = folder_.Write("config", text), .context = context});
  }
  std::string LoadError(const std::string& text) {
    const Result<ClientConfig> config = Load(text);
    return config ? "no error" : config.error().message();
  }

  const TempDir folder_;
  const TestCa ca_;
  const CertifiedKey key_ = ca_.Issue();
};

TEST_F(KubeconfigTest, ReadsInlineData) {
  const Result<ClientConfig> config =
      Load(Simple("{server: 'https://k8s:6443/', certificate-authority-data: " + EncodeBase64(ca_.cert_pem()) +
                      ", tls-server-name: api, proxy-url: 'socks5://p:1'}",
                  "{client-certificate-data: " + EncodeBase64(key_.cert_pem) +
                      ", client-key-data: " + EncodeBase64(key_.key_pem) + "}"));

  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->server, "https://k8s:6443");
  EXPECT_EQ(config->ca_pem, ca_.cert_pem());
  EXPECT_EQ(config->ca_file, "");
  EXPECT_EQ(config->tls_server_name, "api");
  EXPECT_EQ(config->proxy_url, "socks5://p:1");
  EXPECT_EQ(config->cert_pem, key_.cert_pem);
  EXPECT_EQ(config->key_pem, key_.key_pem);
  EXPECT_EQ(config->default_namespace, "team-a");
  EXPECT_EQ(config->source, "kubeconfig \"" + folder_.path("config") + "\", context \"dev\"");
}

TEST_F(KubeconfigTest, A4PathsAreRelativeToTheirOwnFile) {
  folder_.Write("pki/ca.crt", ca_.cert_pem());
  folder_.Write("pki/me.crt", key_.cert_pem);
  folder_.Write("pki/me.key", key_.key_pem);
  folder_.Write("token", "abc");

  const Result<ClientConfig> config = Load(
      Simple("{server: 'https://k8s', certificate-authority: pki/ca.crt}",
             "{client-certificate: ./pki/me.crt, client-key: " + folder_.path("pki/me.key") + ", tokenFile: token}"));

  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->ca_pem, ca_.cert_pem());
  EXPECT_EQ(config->ca_file, folder_.path("pki/ca.crt"));
  EXPECT_EQ(config->cert_file, folder_.path("pki/me.crt"));
  EXPECT_EQ(config->key_file, folder_.path("pki/me.key"));
  EXPECT_EQ(config->key_pem, key_.key_pem);
  EXPECT_EQ(config->token_file, folder_.path("token"));
}

TEST_F(KubeconfigTest, InlineDataWinsOverFiles) {
  const Result<ClientConfig> config =
      Load(Simple("{server: 'https://k8s', certificate-authority: missing, certificate-authority-data: " +
                      EncodeBase64(ca_.cert_pem()) + "}",
                  "{}"));

  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->ca_pem, ca_.cert_pem());
}

TEST_F(KubeconfigTest, A5ReadsImpersonationAndPassword) {
  const Result<ClientConfig> config =
      Load(Simple("{server: 'http://k8s', insecure-skip-tls-verify: true}",
                  "{username: me, password: pw, as: bot, as-uid: '7', as-groups: [a, b]}"));

  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->insecure_skip_verify);
  EXPECT_EQ(config->username, "me");
  EXPECT_EQ(config->password, "pw");
  EXPECT_EQ(config->impersonate_user, "bot");
  EXPECT_EQ(config->impersonate_uid, "7");
  EXPECT_THAT(config->impersonate_groups, ElementsAre("a", "b"));
}

TEST_F(KubeconfigTest, ReadsExecPlugin) {
  const Result<ClientConfig> config =
      Load(Simple("{server: 'https://k8s'}",
                  "{exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/login, args: [get, token],"
                  " env: [{name: A, value: '1'}], provideClusterInfo: true, interactiveMode: Never,"
                  " installHint: install it}}"));

  ASSERT_TRUE(config) << config.error().message();
  ASSERT_TRUE(config->exec);
  EXPECT_EQ(config->exec->command, folder_.path("bin/login"));
  EXPECT_THAT(config->exec->args, ElementsAre("get", "token"));
  EXPECT_THAT(config->exec->env, ElementsAre(Pair("A", "1")));
  EXPECT_TRUE(config->exec->provide_cluster_info);
  EXPECT_EQ(config->exec->interactive_mode, "Never");
  EXPECT_EQ(config->exec->install_hint, "install it");
}

TEST_F(KubeconfigTest, A2CommandWithoutSlashIsLeftToThePath) {
  const Result<ClientConfig> config = Load(
      Simple("{server: 'https://k8s'}", "{exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws}}"));

  EXPECT_EQ(config->exec->command, "aws");
  EXPECT_EQ(config->exec->interactive_mode, "IfAvailable");
}

TEST_F(KubeconfigTest, A4FirstFileOfTheListWins) {
  const std::string one = folder_.Write("a/config", Simple("{server: 'https://one'}", "{tokenFile: t}"));
  folder_.Write("a/t", "1");
  const std::string two = folder_.Write("b/config",
                                        "current-context: other\n"
                                        "contexts: [{name: dev, context: {cluster: d, user: u}}, {name: "
                                        "other, context: {cluster: d, user: v}}]\n"
                                        "clusters: [{name: c, cluster: {server: 'https://two'}}, {name: d, "
                                        "cluster: {server: 'https://three'}}]\n"
                                        "users: [{name: v, user: {tokenFile: t}}]\n");
  folder_.Write("b/t", "2");
  const ScopedVariable list("KUBECONFIG", folder_.path("none") + "::" + one + ":" + two);

  const Result<ClientConfig> current = LoadKubeconfig({});
  const Result<ClientConfig> other = LoadKubeconfig({.path = {}, .context = "other"});

  ASSERT_TRUE(current) << current.error().message();
  EXPECT_EQ(current->server, "https://one");
  EXPECT_EQ(current->token_file, folder_.path("a/t"));
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_EQ(other->server, "https://three");
  EXPECT_EQ(other->token_file, folder_.path("b/t"));
}

TEST_F(KubeconfigTest, DefaultIsTheFileInTheHomeFolder) {
  const ScopedVariable none("KUBECONFIG", nullptr);
  const ScopedVariable home("HOME", folder_.path());
  EXPECT_THAT(LoadKubeconfig({}).error().message(),
              AllOf(HasSubstr(folder_.path(".kube/config")), HasSubstr("set KUBECONFIG")));

  folder_.Write(".kube/config", Simple("{server: 'https://home'}", "{}"));

  EXPECT_EQ(LoadKubeconfig({})->server, "https://home");
}

TEST_F(KubeconfigTest, A4DocumentsOfOneFileAreMerged) {
  const Result<ClientConfig> config = Load(
      "current-context: dev\ncontexts: [{name: dev, context: {cluster: c}}]\n---\n"
      "clusters: [{name: c, cluster: {server: 'https://k8s'}}]\n");

  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->server, "https://k8s");
}

TEST_F(KubeconfigTest, A4Utf16IsRead) {
  const std::string text = Simple("{server: 'https://k8s'}", "{token: abc}");
  std::string wide = "\xff\xfe";
  for (const char c : text) wide.append(1, c).append(1, '\0');

  const Result<ClientConfig> config = Load(wide);

  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->token, "abc");
}

TEST_F(KubeconfigTest, YamlWithoutAnEndIsRefused) {
  EXPECT_THAT(LoadError("!!b,y \"x\"\n"), HasSubstr("no valid YAML in line 1: unexpected text"));
  EXPECT_THAT(LoadError("a: b\n---\n!!b,\n"), HasSubstr("no valid YAML in line 3: unexpected text"));
  std::string many = "[";
  for (int i = 0; i < 300'000; ++i) many += "a,";
  EXPECT_THAT(LoadError(many + "]"), HasSubstr("too many values"));
}

TEST_F(KubeconfigTest, FilesMayComeFromElsewhere) {
  const auto read = [&](const std::string& path) -> Result<std::string> {
    if (path == "/there/config") return Simple("{server: 'https://k8s'}", "{tokenFile: token}");
    if (path == "/there/token") return std::string("abc");
    return Error(ErrorCode::kNotFound, path);
  };
  const Result<ClientConfig> config = LoadKubeconfig({.path = "/there/config"}, read);
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_EQ(config->token_file, "/there/token");
}

TEST_F(KubeconfigTest, GivenContextWinsOverTheCurrentOne) {
  const std::string text =
      "current-context: none\n"
      "contexts: [{name: dev, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: 'https://k8s'}}]\n";

  EXPECT_EQ(Load(text, "dev")->server, "https://k8s");
}

TEST_F(KubeconfigTest, ErrorsNameFileEntryAndReason) {
  const std::string ok = "{server: 'https://k8s'}";
  const std::string cert = "client-certificate-data: " + EncodeBase64(key_.cert_pem);
  const std::string other_key = "client-key-data: " + EncodeBase64(ca_.Issue().key_pem);
  struct Case {
    std::string text;
    const char* want;
  };
  for (const Case& c : {
           Case{"a: [", "no valid YAML in line"},
           Case{"just text", "is no YAML map"},
           Case{"clusters: 5", "clusters is not a list"},
           Case{"clusters: [{cluster: {}}]", "an entry of clusters has no name"},
           Case{"clusters: [{name: c}, {name: c}]", "cluster \"c\": is there twice"},
           Case{"", "no current context; choose one with"},
           Case{"current-context: dev", "current-context names context \"dev\", which does not exist; known: none"},
           Case{"current-context: dev\ncontexts: [{name: dev, context: {cluster: x}}]\nclusters: [{name: a}, "
                "{name: b}]",
                "names cluster \"x\", which does not exist; known: \"a\", \"b\""},
           Case{"current-context: dev\ncontexts: [{name: dev, context: {cluster: c, user: y}}]\n"
                "clusters: [{name: c, cluster: {server: 'https://k8s'}}]",
                "names user \"y\", which does not exist; known: none"},
           Case{Simple("{}", "{}"), "cluster \"c\": server must be a URL"},
           Case{Simple("{server: [a]}", "{}"), "cluster \"c\": server is not a plain value"},
           Case{Simple("{server: 'https://k', proxy-url: 'ftp://x'}", "{}"), "proxy-url must start with"},
           Case{Simple("{server: 'https://k', insecure-skip-tls-verify: maybe}", "{}"), "neither true nor false"},
           Case{Simple("{server: 'https://k', certificate-authority-data: '%'}", "{}"),
                "certificate-authority-data is not valid base64"},
           Case{Simple("{server: 'https://k', certificate-authority-data: aGVsbG8=}", "{}"),
                "certificate authority: no PEM certificate"},
           Case{Simple("{server: 'https://k', certificate-authority: no.crt}", "{}"), "no.crt: no such file"},
           Case{Simple("{server: 'https://k', insecure-skip-tls-verify: true, certificate-authority-data: " +
                           EncodeBase64(ca_.cert_pem()) + "}",
                       "{}"),
                "exclude each other"},
           Case{Simple(ok, "{auth-provider: {name: gcp}}"), "use an exec plugin"},
           Case{Simple(ok, "{" + cert + "}"), "client certificate without a client key"},
           Case{Simple(ok, "{" + other_key + "}"), "client key without a client certificate"},
           Case{Simple(ok, "{" + cert + ", " + other_key + "}"), "does not belong to the client certificate"},
           Case{Simple(ok, "{tokenFile: gone}"), "gone: no such file"},
           Case{Simple(ok, "{token: 's3cret x'}"), "token contains a space"},
           Case{Simple(ok, "{token: s3cret, username: me}"), "exclude each other"},
           Case{Simple(ok, "{as-groups: [a]}"), "as-uid and as-groups need as"},
           Case{Simple(ok, "{as: a, as-groups: b}"), "as-groups is not a list"},
           Case{Simple(ok, "{as: a, as-user-extra: {b: [c]}}"), "as-user-extra is not supported"},
           Case{Simple(ok, "{exec: {apiVersion: client.authentication.k8s.io/v1}}"), "exec has no command"},
           Case{Simple(ok, "{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: x}}"),
                "use client.authentication.k8s.io/v1"},
           Case{Simple(ok, "{exec: 7}"), "exec has no command"},
       }) {
    const std::string message = LoadError(c.text);
    EXPECT_THAT(message, AllOf(HasSubstr(folder_.path("config")), HasSubstr(c.want), Not(HasSubstr("s3cret"))));
  }
}

TEST_F(KubeconfigTest, MissingFilesAreNamed) {
  const ScopedVariable list("KUBECONFIG", folder_.path("x") + ":" + folder_.path("y"));

  EXPECT_THAT(LoadKubeconfig({}).error().message(), AllOf(HasSubstr(folder_.path("x")), HasSubstr(folder_.path("y"))));
  EXPECT_THAT(LoadKubeconfig({.path = folder_.path("z")}).error().message(), HasSubstr(folder_.path("z")));
}

TEST_F(KubeconfigTest, A4DescribeShowsNoSecret) {
  for (const char* user : {"{token: s3cret}", "{username: me, password: s3cret}",
                           "{exec: {apiVersion: client.authentication.k8s.io/v1, command: x, args: [s3cret],"
                           " env: [{name: A, value: s3cret}]}}"}) {
    const Result<ClientConfig> config = Load(Simple("{server: 'https://k8s', proxy-url: 'http://me:s3cret@p'}", user));
    ASSERT_TRUE(config) << config.error().message();
    EXPECT_THAT(Describe(*config), AllOf(HasSubstr("https://k8s with "), Not(HasSubstr("s3cret"))));
  }
}

TEST_F(KubeconfigTest, DescribeNamesTheIdentity) {
  ClientConfig config;
  config.server = "https://k8s";
  EXPECT_EQ(Describe(config), "https://k8s with no credentials");
  config.cert_pem = "x";
  config.impersonate_user = "bot";
  config.insecure_skip_verify = true;
  config.source = "here";
  EXPECT_EQ(Describe(config), "https://k8s with client certificate, as bot, server certificate not verified (here)");
}

}  // namespace
}  // namespace kube

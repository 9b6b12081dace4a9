// SPDX-License-Identifier: Apache-2.0
#include "controllers/manager/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controllers/version/version.h"

namespace grus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

kube::Result<Options> Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "grus-manager");
  return ParseOptions(static_cast<int>(arguments.size()), arguments.data());
}

TEST(Options, DefaultsLookAfterAllNamespacesWithoutALease) {
  const auto options = Parse({});

  ASSERT_TRUE(options.ok());
  EXPECT_THAT(options->controllers, ElementsAre("elastic", "gang", "trial", "queues", "profiler"));
  EXPECT_THAT(options->namespaces, IsEmpty());
  EXPECT_FALSE(options->leader_elect);
  EXPECT_THAT(options->scheduler_lease_namespaces, ElementsAre("kube-system"));
  EXPECT_EQ(options->log_level, kube::LogLevel::kInfo);
}

TEST(Options, ASwitchMayBeSaidAsComponentsOfKubernetesSayIt) {
  EXPECT_TRUE(Parse({"--leader-elect"})->leader_elect);
  EXPECT_TRUE(Parse({"--leader-elect=true", "--controllers=gang"})->leader_elect);
  EXPECT_FALSE(Parse({"--leader-elect=false"})->leader_elect);
  EXPECT_THAT(Parse({"--leader-elect=perhaps"}).error().message(), HasSubstr("--leader-elect"));
}

TEST(Options, ListsAreSplitAtCommasAndTrimmed) {
  const auto options = Parse({"--namespaces", "team-a, team-b,,", "--controllers=elastic"});

  ASSERT_TRUE(options.ok());
  EXPECT_THAT(options->namespaces, ElementsAre("team-a", "team-b"));
  EXPECT_THAT(Parse({"--scheduler-lease-namespaces=a,b"})->scheduler_lease_namespaces, ElementsAre("a", "b"));
}

TEST(Options, KindsOfOwnersAreResourcesAndGroups) {
  const auto options = Parse({"--owner-kinds=rayclusters.ray.io, replicationcontrollers", "--alnair-annotations",
                              "--usage-prometheus=http://p:9090"});
  ASSERT_TRUE(options.ok()) << options.error().message();
  EXPECT_THAT(options->owner_kinds,
              ElementsAre(OwnerKind{"ray.io", "rayclusters"}, OwnerKind{"", "replicationcontrollers"}));
  EXPECT_TRUE(options->alnair_annotations);
}

TEST(Options, AWrongValueNamesTheOptionTheValueAndWhatIsAllowed) {
  struct Case {
    std::vector<const char*> arguments;
    const char* want;
  };
  const Case cases[] = {
      {{"--controllers", "trials"},
       "--controllers \"trials\": expected a list of: elastic, gang, trial, queues, profiler, extender"},
      {{"--nominations", "sometimes"}, "--nominations \"sometimes\": expected auto, always, never or pin"},
      {{"--controllers", ","},
       "--controllers \",\": expected at least one of: elastic, gang, trial, queues, profiler, extender"},
      {{"--scheduler-lease-namespaces", ","}, "--scheduler-lease-namespaces \",\": expected at least one namespace"},
      {{"--reconcile-threads", "0"}, "--reconcile-threads \"0\": expected 1 to 256"},
      {{"--reconcile-threads", "many"}, "--reconcile-threads"},
      {{"--resize-seconds", "-1"}, "--resize-seconds \"-1.000000\": expected 0 to 3600"},
      {{"--resize-seconds", "nan"}, "--resize-seconds"},
      {{"--profiles", "all"}, "--profiles \"all\": expected namespace or cluster"},
      {{"--profile-days", "-1"}, "--profile-days \"-1\": expected 0 to 36500"},
      {{"--prometheus-servers", "http://p:9090,p"}, "--prometheus-servers \"p\": expected URLs"},
      {{"--owner-kinds", "a.b,Ray Clusters"}, "--owner-kinds \"Ray Clusters\": expected RESOURCE.GROUP"},
      {{"--owner-kinds", "rayclusters."}, "--owner-kinds \"rayclusters.\": expected RESOURCE.GROUP"},
      {{"--owner-kinds", ".ray.io"}, "--owner-kinds \".ray.io\": expected RESOURCE.GROUP"},
      {{"--owner-kinds", "secrets"}, "--owner-kinds \"secrets\": expected kinds that control pods"},
      {{"--owner-kinds", "nodes"}, "--owner-kinds \"nodes\": expected kinds that control pods"},
      {{"--owner-kinds", "clusterroles.rbac.authorization.k8s.io"}, "expected kinds that control pods"},
      {{"--alnair-annotations"}, "--alnair-annotations \"true\": expected --usage-prometheus beside it"},
      {{"--alnair-annotations", "--usage-prometheus=http://p:9090", "--controllers=elastic"},
       "--alnair-annotations \"true\": expected profiler in --controllers"},
      {{"--metrics-cert-file", "c"}, "--metrics-key-file \"\": expected a file exactly if --metrics-cert-file has one"},
      {{"--metrics-key-file", "k"}, "--metrics-key-file \"k\": expected a file exactly if --metrics-cert-file has one"},
      {{"--metrics-cert-file", "c", "--metrics-key-file", "k"},
       "--metrics-cert-file \"c\": expected --metrics-secure beside it"},
      {{"--controllers=extender", "--namespaces=a"}, "--namespaces \"a\": expected none with extender"},
      {{"--extender-cert-file", "c"},
       "--extender-key-file \"\": expected a file exactly if --extender-cert-file has one"},
      {{"--extender-client-ca-file", "c"}, "--extender-client-ca-file \"c\": expected --extender-cert-file beside it"},
      {{"--extender-clients", "c"}, "--extender-clients \"c\": expected --extender-client-ca-file beside it"},
      {{"--gpu-weights", "A100"}, "--gpu-weights: \"A100\": expected MODEL=WEIGHT, such as A100=14, of 0 to 1000"},
      {{"--extender-service", "c"}, "--extender-pod-address \"\": expected an address exactly if --extender-service"},
      {{"--log-level", "loud"}, "--log-level \"loud\": expected debug, info, warn or error"},
      {{"--log-format", "xml"}, "--log-format \"xml\": expected text or json"},
      {{"--no-such-option"}, "--no-such-option"},
      {{"stray"}, "see grus-manager --help"},
  };
  for (const Case& c : cases) {
    const auto options = Parse(c.arguments);
    ASSERT_FALSE(options.ok()) << c.arguments[0];
    EXPECT_EQ(options.error().code(), kube::ErrorCode::kInvalidArgument);
    EXPECT_THAT(options.error().message(), HasSubstr(c.want));
  }
}

TEST(Options, HelpNamesEveryOption) {
  const auto help = Parse({"--help"});
  ASSERT_TRUE(help.ok());
  for (const char* option : {"--kubeconfig",
                             "--context",
                             "--controllers",
                             "--namespaces",
                             "--leader-elect",
                             "--scheduler-lease-namespaces",
                             "--metrics-address",
                             "--metrics-secure",
                             "--metrics-cert-file",
                             "--metrics-key-file",
                             "--count-all-pods",
                             "--health-address",
                             "--reconcile-threads",
                             "--resize-seconds",
                             "--profiles",
                             "--profile-days",
                             "--prometheus-servers",
                             "--usage-prometheus",
                             "--owner-kinds",
                             "--alnair-annotations",
                             "--extender-address",
                             "--extender-cert-file",
                             "--extender-key-file",
                             "--extender-client-ca-file",
                             "--extender-clients",
                             "--extender-service",
                             "--extender-pod-address",
                             "--gpu-weights",
                             "--log-level",
                             "--log-format",
                             "--version",
                             "--help"}) {
    EXPECT_THAT(help->text_to_print, HasSubstr(option));
  }
}

TEST(Options, VersionNamesTheVersionAndTheCommit) {
  const auto version = Parse({"--version"});

  ASSERT_TRUE(version.ok());
  EXPECT_EQ(version->text_to_print, std::string("grus-manager ") + kVersion + " (" + kCommit + ")\n");
  EXPECT_THAT(kVersion, MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_THAT(kCommit, MatchesRegex("[0-9a-f]{7}(-dirty)?|unknown"));
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The program grus-manager: how it starts, what it says when it cannot, how it ends.
#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>

#include "tests/integration/elastic_job.h"
#include "tests/integration/kubeconfig.h"
#include "tests/kit/certificates.h"
#include "tests/kit/relay.h"
#include "tests/kit/temp_dir.h"

namespace grus::testing {
namespace {

using kit::Relay;
using ::testing::HasSubstr;

// Each test starts the managers that it needs.
class GrusManager : public ElasticJob {
 protected:
  static void SetUpTestSuite() { StartWorld(); }

  // Of the test cluster, with another server or another CA.
  std::string Kubeconfig(const std::string& server, const std::string& ca_pem) const {
    return folder_.Write("kubeconfig", KubeconfigText(world().config(), server, ca_pem));
  }
  static std::vector<std::string> With(const std::string& kubeconfig) {
    return {"--kubeconfig", kubeconfig, "--metrics-address", "0", "--health-address", "127.0.0.1:0"};
  }

  kube::testing::TempDir folder_;
};

TEST_F(GrusManager, PrintsHelpAndVersion) {
  ManagerProcess help({"--help"}), version({"--version"});

  EXPECT_EQ(help.WaitForExit(), 0);
  EXPECT_THAT(help.output(), HasSubstr("Usage: grus-manager [options]"));
  for (const char* option :
       {"--kubeconfig", "--namespaces", "--leader-elect", "--metrics-address", "--health-address"}) {
    EXPECT_THAT(help.output(), HasSubstr(option));
  }
  EXPECT_EQ(version.WaitForExit(), 0);
  EXPECT_THAT(version.output(), ::testing::MatchesRegex("grus-manager [0-9]+\\.[0-9]+\\.[0-9]+ "
                                                        "\\(([0-9a-f]{7}(-dirty)?|unknown)\\)\n"));
}

// Which options and kubeconfigs are wrong, and how, is tested where they are read.
TEST_F(GrusManager, SaysInOneLineWhyItCannotStart) {
  const std::string missing = folder_.path("missing"), broken = folder_.Write("broken", "clusters: [");
  struct Case {
    std::vector<std::string> arguments;
    std::string says;
    int status;
    ManagerProcess::Variables environment = {};
  };
  const Case cases[] = {{{"--nonsense"}, "nonsense", 2},
                        {{"--reconcile-threads", "0"}, "--reconcile-threads \"0\": expected 1 to 256", 2},
                        {{"--kubeconfig", missing}, missing, 1},
                        {{"--kubeconfig", broken}, broken, 1},
                        {{}, missing, 1, {{"KUBECONFIG", missing}}}};
  for (const Case& c : cases) {
    ManagerProcess manager(c.arguments, c.environment);
    EXPECT_EQ(manager.WaitForExit(), c.status) << c.says;
    const std::string output = manager.output();
    EXPECT_THAT(output, HasSubstr(c.says));
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  }
}

TEST_F(GrusManager, StopsAtOnceWhenTheServersCertificateIsNotTrusted) {
  const kube::testing::TestCa other;
  ManagerProcess manager(With(Kubeconfig(world().config().server, other.cert_pem())));

  EXPECT_EQ(manager.WaitForExit(), 1);
  EXPECT_THAT(manager.output(), HasSubstr("certificate"));
  EXPECT_THAT(manager.output(), Not(HasSubstr("waiting for the API server")));
}

TEST_F(GrusManager, SaysWhichAddressIsTaken) {
  StartManager();
  const std::string taken = "127.0.0.1:" + std::to_string(manager().NumberAfter("metrics_port="));
  ManagerProcess second({"--metrics-address", taken, "--health-address", "0"});

  EXPECT_EQ(second.WaitForExit(), 1);
  EXPECT_THAT(second.output(), HasSubstr(taken));
  EXPECT_EQ(manager().Terminate(), 0);
}

TEST_F(GrusManager, AnswersHealthReadinessAndMetrics) {
  StartManager();
  AddNode(1);
  Create("{}");
  ASSERT_TRUE(AwaitTrains(1));
  const int health = manager().NumberAfter("health_port="), metrics = manager().NumberAfter("metrics_port=");

  EXPECT_EQ(HttpGet(health, "/healthz").status, 200);
  EXPECT_EQ(HttpGet(health, "/readyz").status, 200);
  EXPECT_EQ(HttpGet(health, "/other").status, 404);
  const Answer answer = HttpGet(metrics, "/metrics");
  EXPECT_EQ(answer.status, 200);
  for (const char* name : {"controller_runtime_reconcile_total{controller=\"elastichorovodjob\"", "workqueue_depth{",
                           "rest_client_requests_total{", "process_resident_memory_bytes "}) {
    EXPECT_THAT(answer.body, HasSubstr(name));
  }
  EXPECT_EQ(manager().Terminate(), 0);
}

TEST_F(GrusManager, WaitsForAServerHealthyButNotReadyAndGoesOnOnceItIsThere) {
  Relay relay(ServerPort(world().config()));
  ManagerProcess manager(With(Kubeconfig(ServerAt(relay.port()), world().config().ca_pem)));
  ASSERT_TRUE(manager.AwaitOutput("waiting for the API server"));
  const int health = manager.NumberAfter("health_port=");
  EXPECT_EQ(HttpGet(health, "/healthz").status, 200);
  EXPECT_EQ(HttpGet(health, "/readyz").status, 500);

  relay.Open();

  ASSERT_TRUE(manager.AwaitOutput("caches are synced")) << manager.output();
  EXPECT_EQ(HttpGet(health, "/readyz").status, 200);
  EXPECT_EQ(manager.Terminate(), 0) << manager.output();
}

TEST_F(GrusManager, CatchesUpAfterTheServerWasAway) {
  Relay relay(ServerPort(world().config()));
  relay.Open();
  ManagerProcess manager(With(Kubeconfig(ServerAt(relay.port()), world().config().ca_pem)));
  ASSERT_TRUE(manager.AwaitOutput("caches are synced")) << manager.output();
  AddNodes(2, 2);
  Create(R"({"workersSpec":{"minReplicas":1,"maxReplicas":4}})", "old");
  ASSERT_TRUE(AwaitTrains(4, "old"));
  const PodPtr lost = Workers("old").front();

  // Meanwhile a node is lost, and a job is created.
  relay.Shut();
  ASSERT_TRUE(manager.AwaitOutput("watch failed"));
  DeleteNode(std::string(lost->spec.node_name.view()));
  Create(R"({"workersSpec":{"gpusPerWorker":0,"maxReplicas":2}})", "new");
  relay.Open();

  EXPECT_TRUE(AwaitTrains(2, "new")) << manager.Tail(20);
  EXPECT_TRUE(AwaitTrains(2, "old")) << manager.Tail(20);
  EXPECT_EQ(manager.Terminate(), 0) << manager.Tail(20);
}

TEST_F(GrusManager, OneOfTwoLeadsAndHandsOverWhenItStops) {
  // The lease for which the chart gives rights.
  const std::vector<std::string> election = {"--leader-elect",
                                             "--leader-elect-namespace",
                                             "grus-system",
                                             "--leader-elect-name",
                                             "grus",
                                             "--metrics-address",
                                             "127.0.0.1:0",
                                             "--health-address",
                                             "0"};
  const auto leads = [](ManagerProcess& process) {
    const std::string metrics = HttpGet(process.NumberAfter("metrics_port="), "/metrics").body;
    return metrics.find("leader_election_master_status{name=\"grus\"} 1") != std::string::npos;
  };
  ManagerProcess first(election);
  ASSERT_TRUE(first.AwaitOutput("became leader")) << first.output();
  ManagerProcess second(election);
  ASSERT_TRUE(second.AwaitOutput("caches are synced")) << second.output();
  AddNode(2);
  Create(R"({"workersSpec":{"maxReplicas":2}})");
  ASSERT_TRUE(AwaitTrains(2));
  EXPECT_THAT(second.output(), Not(HasSubstr("became leader")));
  EXPECT_TRUE(leads(first));
  EXPECT_FALSE(leads(second));

  EXPECT_EQ(first.Terminate(), 0) << first.output();

  ASSERT_TRUE(second.AwaitOutput("became leader")) << second.output();
  SetOutcome(LauncherPod()->metadata.name, "succeed");
  EXPECT_TRUE(Await("the second one ends the job", [&] { return Phase() == "Succeeded" && Workers().empty(); }));
  EXPECT_EQ(second.Terminate(), 0) << second.output();
}

}  // namespace
}  // namespace grus::testing

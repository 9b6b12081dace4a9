// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "clientlib/runtime/http_server.h"
#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

using testing::HasSubstr;

struct Outcome {
  int status = 0;
  std::string out, error;
};

Outcome RunWith(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "kubectl-grus");
  std::stringstream out, error;
  Outcome outcome;
  outcome.status = RunCommand(static_cast<int>(arguments.size()), arguments.data(), out, error);
  outcome.out = out.str();
  outcome.error = error.str();
  return outcome;
}

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    points_ = folder_.Write("points.csv",
                            "num_nodes,num_replicas,local_bsz,step_time\n"
                            "1,1,32,0.10\n1,2,32,0.105\n1,4,32,0.11\n2,8,32,0.15\n");
    wanted_ = folder_.Write("wanted.csv", "num_nodes,num_replicas,local_bsz\n1,2,32\n1,3,32\n8,32,32\n");
  }

  std::string KubeconfigFor(const kube::HttpServer& server) const {
    return folder_.Write(
        "kubeconfig",
        "{current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u}],"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:" +
            std::to_string(server.port()) + "'}}]}");
  }

  const kube::testing::TempDir folder_;
  std::string points_, wanted_;
};

TEST_F(CommandLine, PredictsFromFiles) {
  const Outcome outcome = RunWith({"trial", "fit", "--points", points_.c_str(), "--predict", wanted_.c_str()});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.error, "");
  EXPECT_THAT(outcome.out, testing::StartsWith("num_nodes,num_replicas,local_bsz,step_time,low,high,source\n"
                                               "1,2,32,0.105,"));
  EXPECT_THAT(outcome.out, HasSubstr(",Interpolated\n"));
  EXPECT_THAT(outcome.out, HasSubstr(",Unknown\n"));
}

TEST_F(CommandLine, TheLimitOfTheBandIsAnOption) {
  const Outcome outcome =
      RunWith({"trial", "fit", "--points", points_.c_str(), "--predict", wanted_.c_str(), "--max-ratio", "1000"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr(",Extrapolated\n"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("Unknown")));
}

TEST_F(CommandLine, WhatCannotBeDoneIsOneLineAndStatusOne) {
  const std::string bad = folder_.Write("bad.csv", "num_nodes,num_replicas,local_bsz,step_time\n1,1,32,never\n");
  const std::string missing = folder_.path("missing.csv"), folder = folder_.path();
  for (const std::string& points : {bad, missing, folder}) {
    const Outcome outcome = RunWith({"trial", "fit", "--points", points.c_str(), "--predict", wanted_.c_str()});
    EXPECT_EQ(outcome.status, 1) << points;
    EXPECT_EQ(outcome.out, "") << points;
    EXPECT_THAT(outcome.error, HasSubstr(points));
    EXPECT_EQ(std::count(outcome.error.begin(), outcome.error.end(), '\n'), 1) << outcome.error;
  }
}

TEST_F(CommandLine, WrongUseIsStatusTwo) {
  const std::vector<std::vector<const char*>> kWrong = {
      {},
      {"trial"},
      {"trial", "guess"},
      {"trial", "fit"},
      {"trial", "fit", "--points", points_.c_str()},
      {"trial", "fit", "--points", points_.c_str(), "--predict", wanted_.c_str(), "--max-ratio", "0.5"},
      {"trial", "fit", "--points", points_.c_str(), "--predict", wanted_.c_str(), "--max-ratio", "wide"},
      {"trial", "fit", "--pionts", points_.c_str()},
      {"trial", "fit", "stray", "--points", points_.c_str(), "--predict", wanted_.c_str()},
      {"trial", "fit", "bert", "--points", points_.c_str(), "--predict", wanted_.c_str()},
      {"trial", "fit", "bert", "--profile", "p", "--predict", wanted_.c_str()},
      {"trial", "export"},
      {"trial", "export", "a", "b"},
      {"trial", "export", "--profile", ""},
      {"trial", "export", ""},
      {"trial", "fit", "--profile", "", "--predict", wanted_.c_str()},
      {"trial", "export", "a", "--profile", "p"},
      {"trial", "export", "a", "--output", "xml"},
      {"ungate", "stray"},
      {"trial", "plot"},
      {"trial", "plot", "a", "b"},
      {"trial", "plot", "a", "--points", points_.c_str()},
      {"trial", "plot", "a", "--width", "0"},
  };
  for (const auto& arguments : kWrong) {
    const Outcome outcome = RunWith(arguments);
    EXPECT_EQ(outcome.status, 2);
    EXPECT_THAT(outcome.error, HasSubstr("see kubectl grus --help"));
  }
}

TEST_F(CommandLine, APlotWithoutAClusterSaysWhatIsMissing) {
  const std::string missing = folder_.path("kubeconfig");
  const Outcome outcome = RunWith({"trial", "plot", "bert", "-n", "team-a", "--kubeconfig", missing.c_str()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.error, HasSubstr(missing));
}

TEST_F(CommandLine, APlotSaysThatTheClusterHasNoTrialJobs) {
  // An API server that does not know the kind answers 404, without a Status.
  const auto server = kube::HttpServer::Start("127.0.0.1:0", {});
  ASSERT_TRUE(server) << server.error().message();
  const std::string kubeconfig = KubeconfigFor(**server);
  const Outcome outcome = RunWith({"trial", "plot", "bert", "--kubeconfig", kubeconfig.c_str()});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_EQ(outcome.error, "kubectl grus: the cluster has no TrialJobs: the CRDs of grus are not installed\n");
}

TEST_F(CommandLine, WhatObjectsHoldCannotCommandTheTerminal) {
  const char* const trial =
      R"({"kind":"TrialJob","metadata":{"name":"bert","namespace":"default"},
      "status":{"throughputUnit":"SamplesPerSecond","trials":
      [{"name":"a","phase":"Succeeded","config":{"gpuType":"A100\u001b[2J\u009b2J\u202e","gpus":1,"nodes":1},
        "measured":{"throughput":"50"}}]}})";
  const auto server = kube::HttpServer::Start(
      "127.0.0.1:0", {{"/apis/ai.centauruscloud.io/v1alpha1/namespaces/default/trialjobs/bert", [&](auto&) {
                         return kube::HttpReply{200, "application/json", trial};
                       }}});
  ASSERT_TRUE(server) << server.error().message();
  const std::string kubeconfig = KubeconfigFor(**server);

  const Outcome exported = RunWith({"trial", "export", "bert", "-n", "default", "--kubeconfig", kubeconfig.c_str()});
  EXPECT_THAT(exported.out, HasSubstr(R"(A100\u001b[2J\u009b2J\u202e,)")) << exported.error;
  const Outcome failed = RunWith(
      {"trial", "export", "bert", "-n", "default", "--gpu-type", "\u009b2J", "--kubeconfig", kubeconfig.c_str()});
  EXPECT_THAT(failed.error, HasSubstr(R"(\u009b2J)"));
}

TEST_F(CommandLine, HelpSaysHowToUseIt) {
  const Outcome outcome = RunWith({"--help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("--max-ratio"));
  EXPECT_THAT(outcome.out, HasSubstr("--svg"));
}

TEST_F(CommandLine, HelpOfACommandIsAboutThatCommand) {
  const Outcome outcome = RunWith({"trial", "plot", "--help"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.out, HasSubstr("--svg"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("--max-ratio")));
}

TEST_F(CommandLine, ACommandThatIsNotThereIsNamed) {
  EXPECT_THAT(RunWith({"trial", "guess", "bert"}).error, HasSubstr("\"trial guess\""));
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/kit/tree_file.h"

namespace grus {
namespace {

using Arguments = std::vector<std::string>;

struct Answer {
  int status = 0;
  std::string out, error;

  // A figure of the last line.
  double operator[](const std::string& name) const {
    const std::string last = out.substr(out.rfind('\n', out.size() - 2) + 1);
    std::smatch found;
    return std::regex_search(last, found, std::regex("\"" + name + "\":([0-9.]+)")) ? std::stod(found[1]) : -1;
  }
};

Answer Call(const Arguments& arguments) {
  const std::vector<std::string_view> views(arguments.begin(), arguments.end());
  std::ostringstream out, error;
  const int status = RunPollux(views, out, error);
  return {status, out.str(), error.str()};
}

std::string Data(const std::string& path) { return kit::TreePath("bench/data/pollux/" + path).string(); }
std::string Workload(int number) { return Data("workloads/workload-" + std::to_string(number) + ".csv"); }

Answer Replay(int workload, const Arguments& options) {
  Arguments arguments = {"--workload", Workload(workload), "--traces", Data("traces")};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return Call(arguments);
}

// What the policies must reach on the workloads 1 to 4, in seconds.
constexpr double kPublishedTiresias[] = {2473.7, 5145.0, 3876.3, 3280.3};
constexpr double kGoal = 0.87 * 3600, kAdaptiveGoal = 0.72 * 3600;

double AverageOfAll(const Arguments& options) {
  double sum = 0;
  for (int workload = 1; workload <= 4; ++workload) sum += Replay(workload, options)["avg_jct_s"];
  return sum / 4;
}

TEST(Pollux, TiresiasComesToItsPublishedTimes) {
  for (int workload = 1; workload <= 4; ++workload) {
    const double published = kPublishedTiresias[workload - 1];
    EXPECT_NEAR(Replay(workload, {"--policy", "tiresias"})["avg_jct_s"], published, 0.005 * published) << workload;
  }
}

TEST(Pollux, GrusReachesItsGoalAndHarmsNoSlowJob) {
  double sum = 0;
  for (int workload = 1; workload <= 4; ++workload) {
    const Answer grus = Replay(workload, {"--policy", "grus"});
    const Answer tiresias = Replay(workload, {"--policy", "tiresias"});
    EXPECT_LE(grus["p99_jct_s"], tiresias["p99_jct_s"]) << workload;
    EXPECT_LE(grus["restarts_a_job"], 3) << workload;
    sum += grus["avg_jct_s"];
  }
  EXPECT_LE(sum / 4, kGoal);
}

TEST(Pollux, WrongOrMissingCurvesCostLittle) {
  const double right = AverageOfAll({"--policy", "grus"});
  EXPECT_LE(AverageOfAll({"--policy", "grus", "--curve-error", "10", "--seed", "1"}), 1.05 * right);
  EXPECT_LE(AverageOfAll({"--policy", "grus", "--curves", "none"}), 1.10 * right);
}

TEST(Pollux, AJobOfUnknownSpeedClimbsInFewRestarts) {
  for (int workload = 1; workload <= 4; ++workload) {
    EXPECT_LE(Replay(workload, {"--policy", "grus", "--curves", "none"})["restarts_a_job"], 3) << workload;
  }
}

TEST(Pollux, AdaptiveBatchesReachTheirGoalAlsoWithoutCurves) {
  EXPECT_LE(AverageOfAll({"--adaptive", "--policy", "grus"}), kAdaptiveGoal);
  EXPECT_LE(AverageOfAll({"--policy", "grus", "--curves", "none", "--adaptive"}), kAdaptiveGoal);
}

TEST(Pollux, TheSameReplayGivesTheSameFigures) {
  const Arguments options = {"--policy", "grus", "--curve-error", "20", "--seed", "7"};
  EXPECT_EQ(Replay(3, options).out, Replay(3, options).out);
}

TEST(Pollux, BadFilesAreToldInOneLineWithARemedy) {
  const std::string good = kit::ReadTreeFile("bench/data/pollux/workloads/workload-1.csv");
  const auto path = std::filesystem::path(testing::TempDir()) / "pollux_test_workload.csv";
  const std::string header = good.substr(0, good.find('\n') + 1);
  struct Case {
    std::string text, want;
  };
  for (const Case& c : {
           Case{header + "a,1,bert,x,12\n",
                ":2: column num_replicas: \"x\" is wrong; write a whole number from 1 to 64"},
           Case{header + "a,-1,bert,1,12\n", ":2: column time: \"-1\" is wrong; write a number of 0 or more"},
           Case{header + "a,1,gpt,1,12\n",
                ":2: column application: \"gpt\" is wrong; write one of bert, cifar10, deepspeech2, imagenet, ncf, "
                "yolov3"},
           Case{header + "a,1,bert,1,1000\n",
                ":2: column batch_size: \"1000\" is wrong; write a number from 12 to 384, "
                "which were measured for bert"},
           Case{header + "a,1,bert,1,12\na,2,bert,1,12\n",
                ":3: column name: \"a\" is wrong; write another name than that of an earlier line"},
           Case{header, ":1: there are no rows below the header; add at least one"},
       }) {
    std::ofstream(path) << c.text;

    const Answer answer = Call({"--workload", path.string(), "--traces", Data("traces"), "--policy", "grus"});

    EXPECT_EQ(answer.status, 2);
    EXPECT_EQ(answer.error, "grus-sim pollux: " + path.string() + c.want + "\n");
    EXPECT_EQ(answer.out, "");
  }
  std::filesystem::remove(path);
}

TEST(Pollux, BadOptionsAreToldInOneLine) {
  const std::string workload = Workload(1), traces = Data("traces");
  struct Case {
    Arguments arguments;
    std::string want;
  };
  for (const Case& c : {
           Case{{"--traces", traces, "--policy", "grus"}, "--workload is missing"},
           Case{{"--workload", workload, "--traces", traces}, "--policy is missing"},
           Case{{"--workload", workload, "--traces", traces, "--policy", "best"},
                "--policy \"best\": write grus or tiresias"},
           Case{{"--workload", workload, "--traces", traces, "--policy", "grus", "--curve-error", "200"},
                "--curve-error \"200\": write a whole number from 0 to 100"},
           Case{{"--adaptive", "yes"}, "yes is no option of this command"},
           Case{{"--adaptive", "--adaptive"}, "--adaptive is given twice"},
           Case{{"--fast", "yes"}, "--fast is no option of this command"},
           Case{{"--seed"}, "--seed needs a value"},
       }) {
    const Answer answer = Call(c.arguments);
    EXPECT_EQ(answer.status, 2);
    EXPECT_EQ(answer.error, "grus-sim pollux: " + c.want + "\n");
  }
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/pollux.h"

#include <gtest/gtest.h>
#include <unistd.h>

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

TEST(Pollux, WrongCurvesHarmNoSlowJob) {
  for (int workload = 1; workload <= 4; ++workload) {
    const double tiresias = Replay(workload, {"--policy", "tiresias"})["p99_jct_s"];
    for (const char* seed : {"1", "2", "3"}) {
      const Answer grus = Replay(workload, {"--policy", "grus", "--curve-error", "10", "--seed", seed});
      EXPECT_LE(grus["p99_jct_s"], tiresias) << "workload " << workload << ", seed " << seed;
    }
  }
}

// Nobody has tuned the policy on these.
TEST(Pollux, OnDrawnWorkloadsGrusIsFasterToo) {
  for (const char* seed : {"1", "2", "3", "4", "5", "6", "7", "8"}) {
    const Arguments draw = {"--draw", "160", "--seed", seed};
    Arguments grus = {"--policy", "grus"}, tiresias = {"--policy", "tiresias"};
    grus.insert(grus.end(), draw.begin(), draw.end());
    tiresias.insert(tiresias.end(), draw.begin(), draw.end());
    for (const int workload : {2, 4}) {
      EXPECT_LT(Replay(workload, grus)["avg_jct_s"], Replay(workload, tiresias)["avg_jct_s"])
          << workload << ", " << seed;
    }
  }
}

TEST(Pollux, ADrawIsFixedByItsSeed) {
  const auto drawn = [](const char* jobs, const char* seed) {
    return Replay(1, {"--policy", "tiresias", "--draw", jobs, "--seed", seed}).out;
  };
  EXPECT_EQ(drawn("40", "1"), drawn("40", "1"));
  EXPECT_NE(drawn("40", "1"), drawn("40", "2"));
  EXPECT_EQ(drawn("0", "1"), Replay(1, {"--policy", "tiresias"}).out);  // The workload itself.
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
           Case{header + "a,-1,bert,1,12\n", ":2: column time: \"-1\" is wrong; write a number from 0 to 8640000"},
           Case{header + "a,1e9,bert,1,12\n", ":2: column time: \"1e9\" is wrong; write a number from 0 to 8640000"},
           Case{header + "a,nan,bert,1,12\n", ":2: column time: \"nan\" is wrong; write a number from 0 to 8640000"},
           Case{header + "a,1,bert,0,12\n",
                ":2: column num_replicas: \"0\" is wrong; write a whole number from 1 to 64"},
           Case{header + "a,1,\"g\npt\",1,12\n",
                ":2: column application: \"g pt\" is wrong; write one of bert, cifar10, deepspeech2, imagenet, ncf, "
                "yolov3"},
           Case{"name,time\na,1\n",
                ":1: no column application; the header must name name, time, application, num_replicas, batch_size"},
           Case{std::string("n\0a\0", 4), ":1: is no text, or UTF-16; save the file as UTF-8"},
           Case{"", ":1: no header; the first line must name the columns"},
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

// The traces of bench/data in a folder of the test's own, so that it can break a file.
class PolluxTraces : public testing::Test {
 protected:
  PolluxTraces() { std::filesystem::copy(Data("traces"), folder_, std::filesystem::copy_options::recursive); }
  ~PolluxTraces() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path FileOf(const std::string& name) const { return folder_ / "cifar10" / name; }
  Answer Replay() const { return Call({"--workload", Workload(1), "--traces", folder_.string(), "--policy", "grus"}); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("pollux_traces_" + std::to_string(getpid()));
};

TEST_F(PolluxTraces, ABadRowIsToldInOneLineWithARemedy) {
  const std::string steps = "placement,local_bsz,step_time,sync_time\n";
  const std::string scales = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n";
  const std::string epochs = "progress,iteration,metric,grad_sqr,grad_var\n";
  struct Case {
    std::string file, text, want;
  };
  for (const Case& c : {
           Case{"placements.csv", steps + "404,8,0.1,0.05\n",
                ":2: column placement: \"404\" is wrong; write a digit from 1 to 4 for each node"},
           Case{"placements.csv", steps + "4,8,0.1,0.2\n",
                ":2: column sync_time: \"0.2\" is wrong; write at most step_time, of which it is a part"},
           Case{"placements.csv", steps + "4,8,1e300,0\n",
                ":2: column step_time: \"1e300\" is wrong; write a number from 0.000001 to 1000000"},
           Case{"placements.csv", steps + "4,1e9,1,0\n",
                ":2: column local_bsz: \"1e9\" is wrong; write a number from 1 to 1000000"},
           Case{"placements.csv", "", ":1: no header; the first line must name the columns"},
           Case{"scalability.csv", scales + "1,5,8,1,0\n",
                ":2: column num_replicas: \"5\" is wrong; write from 1 to 4 for each of num_nodes"},
           Case{"validation-128.csv", epochs + "1,1,1,0,0\n",
                ":2: column grad_var: \"0\" is wrong; write more than 0, or give grad_sqr more than 0"},
           Case{"validation-128.csv", epochs + "2,1,1,1,1\n2,1,1,1,1\n",
                ":3: column progress: \"2\" is wrong; write more than in the row before, and more than 0"},
           Case{"validation-128.csv", epochs + "1,1,1,1,1\n", ": has 1 rows; write one for each of 100 epochs"},
       }) {
    const std::string good = kit::ReadTreeFile("bench/data/pollux/traces/cifar10/" + c.file);
    std::ofstream(FileOf(c.file)) << c.text;

    const Answer answer = Replay();

    EXPECT_EQ(answer.status, 2) << c.want;
    EXPECT_EQ(answer.error, "grus-sim pollux: " + FileOf(c.file).string() + c.want + "\n");
    EXPECT_EQ(answer.out, "");
    std::ofstream(FileOf(c.file)) << good;
  }
}

TEST_F(PolluxTraces, OtherFilesAndLineEndsAreNoMatter) {
  const std::string want = Replay().out;
  for (const char* name : {"validation-128.csv.swp", "validation-x.csv", "validation-99999999999.csv"}) {
    std::ofstream(FileOf(name)) << "no csv";
  }
  const std::string good = kit::ReadTreeFile("bench/data/pollux/traces/cifar10/placements.csv");
  std::ofstream(FileOf("placements.csv")) << "\xEF\xBB\xBF" << std::regex_replace(good, std::regex("\n"), "\r\n");

  EXPECT_EQ(Replay().out, want);
}

TEST_F(PolluxTraces, AJobThatNeverEndsIsNamed) {
  std::string slow = "placement,local_bsz,step_time,sync_time\n";
  for (const char* placement : {"1", "2", "3", "4"}) slow += std::string(placement) + ",8,1000000,0\n";
  std::ofstream(FileOf("placements.csv")) << slow;
  std::ofstream(FileOf("scalability.csv")) << "num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,6,8,1000000,0\n";

  const std::filesystem::path workload = FileOf("workload.csv");
  std::ofstream(workload) << "name,time,application,num_replicas,batch_size\nslow,1,cifar10,1,128\n";

  const Answer answer = Call({"--workload", workload.string(), "--traces", folder_.string(), "--policy", "tiresias"});

  EXPECT_EQ(answer.status, 2);
  EXPECT_EQ(answer.error,
            "grus-sim pollux: job slow: not complete after a year; give it fewer steps (progress) or a shorter "
            "step_time in the traces of cifar10\n");
}

TEST(Pollux, HelpIsNoError) {
  const Answer answer = Call({"--help"});
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.out, kPolluxHelp);
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
           Case{{"--workload", workload, "--traces", workload, "--policy", "grus"},
                workload + ": is no folder; give the one that has the traces' folders bert, cifar10, ..."},
           Case{{"--workload", workload, "--traces", traces, "--policy", "grus", "--draw", "-1"},
                "--draw \"-1\": write a whole number from 0 to 10000"},
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

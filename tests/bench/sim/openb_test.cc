// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/openb.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

struct Answer {
  int status = 0;
  std::string out, error;
};

Answer RunWith(const std::vector<std::string>& arguments) {
  std::ostringstream out, error;
  const int status = RunOpenb(std::vector<std::string_view>(arguments.begin(), arguments.end()), out, error);
  return {status, out.str(), error.str()};
}

std::string LastLine(std::string text) {
  text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

class Openb : public ::testing::Test {
 protected:
  // Two nodes of two GPUs. 130 % of them are 5.2: the pods that ask for 5 arrive, and one of them finds no room.
  const kube::testing::TempDir folder_;
  const std::string nodes_ = folder_.Write("nodes.csv",
                                           "sn,cpu_milli,memory_mib,gpu,model\n"
                                           "a,8000,8000,2,T4\n"
                                           "b,8000,8000,2,T4\n");
  const std::string pods_ = folder_.Write("pods.csv",
                                          "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
                                          "p,1000,1000,1,1000,\n"
                                          "q,1000,1000,1,1000,T4\n");
  const std::vector<std::string> files_ = {"--nodes", nodes_, "--pods", pods_};

  std::vector<std::string> With(std::vector<std::string> more) const {
    more.insert(more.begin(), files_.begin(), files_.end());
    return more;
  }
};

TEST_F(Openb, EndsWithOneLineOfJson) {
  struct Case {
    std::vector<std::string> options;
    const char* want;
  };
  for (const Case& c : {
           Case{{"--policy", "grus"}, R"({"policy":"grus","ties":"random","seed":1,)"},
           Case{{"--policy", "grus", "--ties", "name", "--seed", "7"}, R"({"policy":"grus","ties":"name","seed":7,)"},
           Case{{"--policy", "fgd", "--seed", "0"}, R"({"policy":"fgd","ties":"name","seed":0,)"},
           Case{{"--policy", "bestfit"}, R"({"policy":"bestfit","ties":"name","seed":1,)"},
           Case{{"--policy", "bestfit", "--ties", "random"}, R"({"policy":"bestfit","ties":"random","seed":1,)"},
           Case{{"--policy", "planner", "--seed", "3"}, R"({"policy":"planner","ties":"name","seed":3,)"},
       }) {
    const Answer answer = RunWith(With(c.options));

    EXPECT_EQ(answer.status, 0);
    EXPECT_EQ(answer.error, "");
    EXPECT_EQ(LastLine(answer.out), std::string(c.want) + R"("arrived":5,"placed":4,"allocated_percent_100":100.0000,)"
                                                          R"("allocated_percent_130":100.0000})");
  }
}

TEST_F(Openb, SaysWhatIsWrongInOneLineAndExitsWith2) {
  struct Case {
    std::vector<std::string> arguments;
    std::string want;
  };
  const std::string missing = folder_.path("none.csv"), empty = folder_.Write("empty.csv", "");
  const std::string header = folder_.Write("header.csv", "sn,cpu_milli,memory_mib,gpu,model\n");
  const std::string usage = "; see grus-sim openb --help";
  for (const Case& c : {
           Case{{}, "--nodes is missing" + usage},
           Case{{"--nodes", nodes_, "--policy", "grus"}, "--pods is missing" + usage},
           Case{files_, "--policy is missing" + usage},
           Case{With({"--policy", "best"}), "--policy best: give grus, planner, fgd or bestfit" + usage},
           Case{With({"--policy", "fgd", "--seed", "-1"}), "--seed -1: give a whole number, 0 or more" + usage},
           Case{With({"--policy", "fgd", "--seed", "1x"}), "--seed 1x: give a whole number, 0 or more" + usage},
           Case{With({"--policy", "fgd", "--ties", "first"}), "--ties first: give random or name" + usage},
           Case{With({"--policy", "planner", "--ties", "name"}),
                "--ties: the planner has none; leave the option out" + usage},
           Case{With({"--policy"}), "--policy needs a value" + usage},
           Case{With({"--pods", pods_}), "--pods is given twice" + usage},
           Case{With({"--polcy", "fgd"}), "--polcy is no option of this command" + usage},
           Case{{"pods.csv"}, "pods.csv is no option of this command" + usage},
           Case{{"--nodes", missing, "--pods", pods_, "--policy", "fgd"},
                missing + ": cannot be read; give the path of a CSV file"},
           Case{{"--nodes", nodes_, "--pods", folder_.path(), "--policy", "fgd"},
                folder_.path() + ": cannot be read; give the path of a CSV file"},
           Case{{"--nodes", nodes_, "--pods", empty, "--policy", "fgd"},
                empty + ":1: no header; the first line must name the columns"},
           Case{{"--nodes", header, "--pods", pods_, "--policy", "fgd"},
                header + ":1: there are no rows below the header; add at least one"},
           Case{{"--nodes", pods_, "--pods", pods_, "--policy", "fgd"},
                pods_ + ":1: no column sn; the header must name sn, cpu_milli, memory_mib, gpu, model"},
       }) {
    const Answer answer = RunWith(c.arguments);

    EXPECT_EQ(answer.status, 2) << c.want;
    EXPECT_EQ(answer.out, "") << c.want;
    EXPECT_EQ(answer.error, "grus-sim openb: " + c.want + "\n");
  }
}

TEST_F(Openb, TellsItsOptions) {
  const Answer answer = RunWith({"--help"});

  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(answer.out, kOpenbHelp);
}

}  // namespace
}  // namespace grus

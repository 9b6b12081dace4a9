// SPDX-License-Identifier: Apache-2.0
#include "controllers/kubectl/interference_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include "controllers/kubectl/command_line.h"
#include "tests/kit/temp_dir.h"

namespace grus {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class InterferenceCommand : public testing::Test {
 protected:
  int Run(std::vector<std::string> arguments) {
    std::vector<const char*> argv = {"kubectl-grus", "interference", "fit"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    std::stringstream out, error;
    const int status = RunCommand(static_cast<int>(argv.size()), argv.data(), out, error);
    out_ = out.str();
    error_ = error.str();
    return status;
  }

  const kube::testing::TempDir folder_;
  const std::string points_ = folder_.Write("a.csv", "job,with_job,speed\na,b,0.5\nb,a,0.9\na,c,0.6\n");
  const std::string wanted_ = folder_.Write("b.csv", "job,with_job\na,b\nc,a\n");
  std::string out_, error_;
};

TEST_F(InterferenceCommand, PredictsFromPointsAndFromTheModelThatItSaved) {
  const std::string model = points_ + ".json";
  EXPECT_EQ(Run({"--points", points_, "--predict", wanted_, "--save", model}), 0) << error_;
  EXPECT_THAT(error_, IsEmpty());
  EXPECT_THAT(out_, StartsWith("speed,low,high\n"));
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 3);
  const std::string answer = out_;
  EXPECT_EQ(Run({"--model", model, "--predict", wanted_}), 0) << error_;
  EXPECT_EQ(out_, answer);
}

TEST_F(InterferenceCommand, SavesWithoutAQuestion) {
  EXPECT_EQ(Run({"--points", points_, "--save", points_ + ".json"}), 0) << error_;
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_EQ(Run({"--points", points_, "--save", points_ + "/no/such"}), 1);
  EXPECT_THAT(error_, HasSubstr("cannot be written"));
}

TEST_F(InterferenceCommand, SaysOnStderrWhatItLeavesOut) {
  const std::string odd = folder_.Write("odd.csv", "job,with_job,speed,note\na,b,0.5,x\nb,a,,\n");
  EXPECT_EQ(Run({"--points", odd, "--predict", wanted_}), 0) << error_;
  EXPECT_THAT(error_, HasSubstr("odd.csv: not used: column note\n"));
  EXPECT_THAT(error_, HasSubstr("odd.csv: left out 1 row without a speed\n"));
}

TEST_F(InterferenceCommand, TheQuestionIsReadBeforeAnythingElse) {
  const std::string bad = folder_.Write("bad.csv", "job,with_job,mem\na,b,big\n");
  EXPECT_EQ(Run({"--points", points_ + ".none", "--predict", bad, "--save", points_ + ".json"}), 1);
  EXPECT_THAT(error_, HasSubstr("bad.csv:2: column mem"));
}

TEST_F(InterferenceCommand, SavesOnlyWhatItReadsAgain) {
  const std::string name(9 << 20, 'x');
  const std::string large = folder_.Write("large.csv", "job,with_job,speed\n" + name + ",b,0.5\n");
  const std::string model = points_ + ".json";
  EXPECT_EQ(Run({"--points", large, "--save", model}), 1);
  EXPECT_THAT(error_, HasSubstr(".json: not written: "));
  EXPECT_FALSE(std::filesystem::exists(model));
}

TEST_F(InterferenceCommand, AFileWithoutEndIsReadToTheLimit) {
  for (const char* option : {"--points", "--model"}) {
    EXPECT_EQ(Run({option, "/dev/zero", "--predict", wanted_}), 1);
    EXPECT_THAT(error_, HasSubstr("/dev/zero: ")) << option;
  }
}

TEST_F(InterferenceCommand, BadInputIsOneLineAndStatusOne) {
  const std::string bad = folder_.Write("bad.csv", "job,with_job,speed\na,b,0\n");
  const std::string other = folder_.Write("other.json", "{\"version\":2}");
  const std::vector<std::vector<std::string>> kBad = {{"--points", bad, "--predict", wanted_},
                                                      {"--points", points_, "--predict", bad + "x"},
                                                      {"--points", "/", "--predict", wanted_},
                                                      {"--model", other, "--predict", wanted_},
                                                      {"--model", points_, "--predict", wanted_}};
  for (const auto& arguments : kBad) {
    EXPECT_EQ(Run(arguments), 1);
    EXPECT_THAT(out_, IsEmpty());
    EXPECT_EQ(std::count(error_.begin(), error_.end(), '\n'), 1) << error_;
  }
}

TEST_F(InterferenceCommand, WrongUseIsStatusTwo) {
  const std::vector<std::vector<std::string>> kWrong = {{},
                                                        {"--points", points_},
                                                        {"--predict", wanted_},
                                                        {"--points", points_, "--model", points_, "--predict", wanted_},
                                                        {"--points", points_, "--predict", wanted_, "more"},
                                                        {"--no-such", "x"}};
  for (const auto& arguments : kWrong) EXPECT_EQ(Run(arguments), 2);
  EXPECT_THAT(error_, HasSubstr("see kubectl grus --help"));
}

}  // namespace
}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/auth/subprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <stop_token>
#include <thread>

#include "tests/kit/environment.h"

namespace kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ScopedVariable;

ProgramCall Shell(const std::string& script) { return {.program = "sh", .args = {"-c", script}, .env = {}}; }

TEST(RunProgram, GivesStandardOutput) {
  const Result<std::string> output = RunProgram(Shell("echo out; echo err >&2; cat"));

  ASSERT_TRUE(output) << output.error().message();
  EXPECT_EQ(*output, "out\n");
}

TEST(RunProgram, ArgumentsPassThroughNoShell) {
  EXPECT_EQ(*RunProgram({.program = "printf", .args = {"%s|", "$HOME", "a b", "`id`", ""}, .env = {}}),
            "$HOME|a b|`id`||");
}

TEST(RunProgram, AddsToTheEnvironmentAndReplacesInIt) {
  const ScopedVariable kept("GRUS_TEST_KEPT", "kept");
  const ScopedVariable replaced("GRUS_TEST_SET", "old");
  ProgramCall call = Shell("echo $GRUS_TEST_KEPT $GRUS_TEST_SET; env | grep -c GRUS_TEST_SET=");
  call.env = {{"GRUS_TEST_SET", "new"}};

  EXPECT_EQ(*RunProgram(call), "kept new\n1\n");
}

TEST(RunProgram, FailureNamesProgramAndStatusButNoOutput) {
  const Result<std::string> failed = RunProgram(Shell("echo s3cret; exit 3"));
  const Result<std::string> killed = RunProgram(Shell("kill -9 $$"));

  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::kUnavailable);
  EXPECT_EQ(failed.error().message(), "sh: failed with exit status 3");
  EXPECT_EQ(killed.error().message(), "sh: was ended by signal 9");
}

TEST(RunProgram, MissingProgramIsNotFound) {
  const Result<std::string> output = RunProgram({.program = "no-such-program-of-grus", .args = {}, .env = {}});

  EXPECT_EQ(output.error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(output.error().message(), "no-such-program-of-grus: cannot start: no such file or directory");
}

TEST(RunProgram, AStopEndsIt) {
  std::stop_source stop;
  ProgramCall call = Shell("echo started; exec >&-; sleep 60");
  call.stop = stop.get_token();
  std::jthread stopper([&] { stop.request_stop(); });  // Before it starts, or while it runs.

  const Result<std::string> output = RunProgram(call);

  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code(), ErrorCode::kCancelled);
}

TEST(RunProgram, TimeLimitEndsItEvenWhenItClosedItsOutput) {
  for (const char* script : {"sleep 60", "exec >&-; sleep 60"}) {
    ProgramCall call = Shell(script);
    call.time_limit = 50ms;

    EXPECT_EQ(RunProgram(call).error().code(), ErrorCode::kTimeout) << script;
  }
}

TEST(RunProgram, ChildThatKeepsTheOutputOpenIsNotAwaited) {
  const Result<std::string> child = RunProgram(Shell("sleep 600 2>/dev/null & echo $!"));

  ASSERT_TRUE(child) << child.error().message();
  EXPECT_EQ(kill(std::stoi(*child), SIGKILL), 0) << "it was not left alone";
}

TEST(RunProgram, EndlessOutputIsTooLarge) {
  ProgramCall call = Shell("while :; do echo s3cret; done");
  call.output_limit = 1000;

  const Result<std::string> output = RunProgram(call);

  EXPECT_EQ(output.error().code(), ErrorCode::kTooLarge);
  EXPECT_THAT(output.error().message(), Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace kube

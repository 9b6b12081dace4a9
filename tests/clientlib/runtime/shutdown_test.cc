// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/shutdown.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/kit/event.h"

namespace kube {
namespace {

using testing::Event;

class SignalStopTest : public ::testing::TestWithParam<int> {};

TEST_P(SignalStopTest, TheFirstSignalRequestsAStop) {
  SignalStop signals;
  Event stopped;
  std::stop_callback on_stop(signals.token(), [&] { stopped.Set(); });
  EXPECT_FALSE(signals.token().stop_requested());

  kill(getpid(), GetParam());

  EXPECT_TRUE(stopped.Wait());
}

// Of a process of its own.
[[noreturn]] void TakeTwoSignals(int signal) {
  SignalStop signals;
  Event stopped, never;
  std::stop_callback on_stop(signals.token(), [&] { stopped.Set(); });
  kill(getpid(), signal);
  if (!stopped.Wait()) _exit(1);
  kill(getpid(), signal);
  (void)never.Wait();
  _exit(2);
}

TEST_P(SignalStopTest, TheSecondSignalEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(TakeTwoSignals(GetParam()), ::testing::ExitedWithCode(128 + GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Signals, SignalStopTest, ::testing::Values(SIGTERM, SIGINT));

TEST(SignalStop, EndsWithoutASignalAndWithoutAStop) {
  std::stop_token token;
  {
    SignalStop signals;
    token = signals.token();
  }
  EXPECT_FALSE(token.stop_requested());

  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_FALSE(sigismember(&mask, SIGTERM));
}

TEST(SignalStop, AWriteToAClosedSocketDoesNotKill) {
  SignalStop signals;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  close(ends[0]);

  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);

  close(ends[1]);
}

}  // namespace
}  // namespace kube

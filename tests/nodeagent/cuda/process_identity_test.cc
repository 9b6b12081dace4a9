// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/cuda/process_identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

namespace grus::cuda {
namespace {

TEST(ProcessIdentity, IsTheNumberAndTheStartOfTheProcessInAllItsThreads) {
  const ProcessIdentity me = ThisProcess();
  EXPECT_EQ(me.pid, getpid());
  EXPECT_GT(me.started, 0u);
  std::jthread([&] { EXPECT_EQ(ThisProcess(), me); });
}

TEST(ProcessIdentity, TheNameOfAProgramMisleadsNobody) {
  const ProcessIdentity me = ThisProcess();
  for (const char* name : {")", "a) Z 1 2 3", ") (x) S 9", " ", "(((", ""}) {
    ASSERT_EQ(prctl(PR_SET_NAME, name), 0);
    EXPECT_EQ(ThisProcess(), me) << name;
    EXPECT_TRUE(IsAlive(me)) << name;
  }
}

TEST(ProcessIdentity, OneThatStartedAtAnotherTimeIsAnother) {
  ProcessIdentity me = ThisProcess();
  EXPECT_TRUE(IsAlive(me));
  ++me.started;
  EXPECT_FALSE(IsAlive(me));
  me.started = 0;  // Not known.
  EXPECT_TRUE(IsAlive(me));
}

TEST(ProcessIdentity, NumbersThatNoProcessHasAreDead) {
  for (const int pid : {0, -1, -2147483647 - 1, 2147483647}) {
    EXPECT_FALSE(IsAlive({pid, 0})) << pid;
    EXPECT_FALSE(IsAlive({pid, 5})) << pid;
  }
}

TEST(ProcessIdentity, OneThatEndedIsDeadAlsoBeforeItsParentWaits) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(IsAlive({child, 0}));
  waitpid(child, nullptr, 0);
  EXPECT_FALSE(IsAlive({child, 0}));
}

TEST(ProcessIdentity, OneWhoseFirstThreadEndedIsAliveWithTheOthers) {
  int ends[2] = {};
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::thread([&] {
      char word = 0;
      close(ends[1]);
      _exit(read(ends[0], &word, 1) == 0 ? 0 : 1);  // Until the test closes the other end.
    }).detach();
    syscall(SYS_exit, 0);
  }
  close(ends[0]);
  const auto state = [&] {
    std::ifstream file("/proc/" + std::to_string(child) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return text[text.rfind(')') + 2];
  };
  while (state() != 'Z') sched_yield();
  EXPECT_TRUE(IsAlive({child, 0}));
  close(ends[1]);
  siginfo_t info = {};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(IsAlive({child, 0}));
  waitpid(child, nullptr, 0);
}

TEST(ProcessIdentity, WithoutAFileToSpareTheLivingAreAlive) {
  const ProcessIdentity me = ThisProcess(), parent = {getppid(), 0};
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool is_alive = IsAlive(me) && IsAlive(parent), is_dead = !IsAlive({2147483647, 1});
  const ProcessIdentity now = ThisProcess();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(is_alive);
  EXPECT_TRUE(is_dead);
  EXPECT_EQ(now, (ProcessIdentity{getpid(), 0}));
}

TEST(ProcessIdentity, OneOfAnotherUserIsAlive) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0 || setuid(65534) != 0) _exit(1);
    _exit(IsAlive({getppid(), 5}) && !IsAlive({2147483647, 5}) ? 0 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace grus::cuda

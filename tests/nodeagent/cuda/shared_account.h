// SPDX-License-Identifier: Apache-2.0
// For tests of the account: a folder as the agent makes it, its files as a hostile program would open them, and
// children that run a part of a test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "nodeagent/cuda/account.h"
#include "nodeagent/limits/share_folder.h"
#include "tests/kit/must.h"
#include "tests/kit/temp_dir.h"

namespace grus::cuda {

inline constexpr char kGpu0[] = "GPU-00112233-4455-6677-8899-aabbccddeeff";
inline constexpr char kGpu1[] = "GPU-ffeeddcc-bbaa-9988-7766-554433221100";

inline SharedAccount& MustOpen(const std::string& folder) {
  const char* why = nullptr;
  SharedAccount* const account = SharedAccount::Open(folder.c_str(), &why);
  if (account == nullptr) throw std::runtime_error(why != nullptr ? why : "no folder");
  return *account;
}

// Runs `part` in a child that `make` makes (fork by default). Returns its exit status; 128 + signal if it was killed.
inline int ExitOf(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -1;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
inline pid_t Start(const std::function<int()>& part) {
  const pid_t child = fork();
  if (child == 0) _exit(part());
  return child;
}
inline int InChild(const std::function<int()>& part) { return ExitOf(Start(part)); }

// A word from one process to another.
class Signal {
 public:
  Signal() {
    if (pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  }
  ~Signal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  void Give() { EXPECT_EQ(write(ends_[1], "x", 1), 1); }
  void Await() {
    char word = 0;
    EXPECT_EQ(read(ends_[0], &word, 1), 1);
  }

 private:
  int ends_[2] = {};
};

class AccountTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kLimit = 1000;

  AccountTest() {
    parts_[0].gpu = kGpu0;
    parts_[0].memory_bytes = kLimit;
    parts_[1].gpu = kGpu1;
    share_.emplace(dir_.path("share"));
    kit::Must(share_->Make(parts_, std::chrono::nanoseconds(1)));
    raw_ = Map();
  }
  ~AccountTest() override { munmap(raw_, sizeof(Account)); }

  std::string folder() const { return share_->path(); }
  std::string account_file() const { return folder() + "/" + kAccountFile; }
  Account* Map() const {
    const int file = open(account_file().c_str(), O_RDWR | O_CLOEXEC);
    void* const start = mmap(nullptr, sizeof(Account), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (start == MAP_FAILED) throw std::runtime_error("mmap");
    return static_cast<Account*>(start);
  }
  // Of the places that are taken.
  std::vector<ProcessAccount> Places() const {
    std::vector<ProcessAccount> places;
    for (const ProcessAccount& place : raw_->processes) {
      if (place.pid != 0) places.push_back(place);
    }
    return places;
  }
  // A process that has ended, and whose number no other has.
  static ProcessIdentity DeadProcess() {
    ProcessIdentity* const shared = static_cast<ProcessIdentity*>(
        mmap(nullptr, sizeof(ProcessIdentity), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    InChild([&] {
      *shared = ThisProcess();
      return 0;
    });
    const ProcessIdentity dead = *shared;
    munmap(shared, sizeof(ProcessIdentity));
    return dead;
  }
  void SetPlace(std::size_t index, const ProcessIdentity& process, std::uint64_t bytes) {
    raw_->processes[index].pid = process.pid;
    raw_->processes[index].started = process.started;
    raw_->processes[index].memory[0] = bytes;
    raw_->memory[0] += bytes;
  }

  const kube::testing::TempDir dir_;
  std::vector<ShareLimits> parts_{2};
  std::optional<ShareFolder> share_;
  Account* raw_ = nullptr;  // As any program of the container may map it.
};

}  // namespace grus::cuda

// SPDX-License-Identifier: Apache-2.0
#include "tests/integration/manager_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "clientlib/http/curl_transport.h"

namespace grus::testing {
namespace {

// Our environment with `variables` laid over it.
std::vector<std::string> Environment(const ManagerProcess::Variables& variables) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool is_replaced = false;
    for (const auto& [name, value] : variables) is_replaced |= text.starts_with(name + "=");
    if (!is_replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : variables) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string ManagerPath() {
  const char* path = std::getenv("GRUS_MANAGER");
  if (path == nullptr) throw std::runtime_error("GRUS_MANAGER, the path of grus-manager, is not set");
  return path;
}

std::string FileOfTree(const std::string& path) {
  const char* cluster = std::getenv("GRUS_CLUSTER");
  if (cluster == nullptr) throw std::runtime_error("GRUS_CLUSTER is not set: run scripts/integration-tests");
  return (std::filesystem::path(cluster).parent_path() / "../.." / path).lexically_normal().string();
}

ManagerProcess::ManagerProcess(const std::vector<std::string>& arguments, const Variables& variables) {
  std::vector<std::string> words = {ManagerPath()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = Environment(variables);
  const std::vector<char*> argv = Pointers(words), envp = Pointers(environment);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));

  pid_ = fork();
  if (pid_ == 0) {  // Other threads run: nothing here but system calls.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  close(ends[1]);
  if (pid_ < 0) {
    close(ends[0]);
    throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  }
  reader_ = std::jthread([this, fd = ends[0]] { Read(fd); });
}

ManagerProcess::~ManagerProcess() { Signal(SIGKILL); }

void ManagerProcess::Read(int fd) {
  char buffer[8192];
  for (;;) {
    const ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    std::lock_guard lock(mutex_);
    output_.append(buffer, static_cast<std::size_t>(count));
    changed_.notify_all();
  }
  close(fd);
  // Looked at first and reaped under the lock: the pid stays ours while Signal() may use it.
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
  std::lock_guard lock(mutex_);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  exit_status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  changed_.notify_all();
}

void ManagerProcess::Signal(int number) {
  std::lock_guard lock(mutex_);
  if (!exit_status_) kill(pid_, number);
}

std::optional<int> ManagerProcess::WaitForExit(std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return exit_status_.has_value(); });
  return exit_status_;
}

std::optional<int> ManagerProcess::Terminate() {
  Signal(SIGTERM);
  return WaitForExit();
}

bool ManagerProcess::AwaitOutput(std::string_view text, std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  const auto is_there = [&] { return output_.find(text) != std::string::npos; };
  changed_.wait_for(lock, limit, [&] { return is_there() || exit_status_; });
  return is_there();
}

std::string ManagerProcess::output() const {
  std::lock_guard lock(mutex_);
  return output_;
}

std::string ManagerProcess::Tail(int lines) const {
  std::lock_guard lock(mutex_);
  std::size_t start = output_.size();
  for (int i = 0; i <= lines && start != std::string::npos && start > 0; ++i) start = output_.rfind('\n', start - 1);
  return start == std::string::npos || start == 0 ? output_ : output_.substr(start + 1);
}

int ManagerProcess::NumberAfter(std::string_view field) const {
  std::lock_guard lock(mutex_);
  const std::size_t at = output_.find(field);
  return at == std::string::npos ? 0 : std::atoi(output_.c_str() + at + field.size());
}

Answer HttpGet(int port, const std::string& path) {
  static const kube::SystemClock clock;
  kube::TransportOptions options;
  options.server = "http://127.0.0.1:" + std::to_string(port);
  auto transport = kube::CurlTransport::Create(options, clock);
  if (!transport) throw std::runtime_error(transport.error().message());
  kube::HttpRequest request;
  request.target = path;
  auto response = (*transport)->Send(request, {});
  return response ? Answer{response->status, response->body} : Answer{};
}

}  // namespace grus::testing

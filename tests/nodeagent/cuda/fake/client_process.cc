// SPDX-License-Identifier: Apache-2.0
#include "tests/nodeagent/cuda/fake/client_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

namespace grus::cuda::fake {

namespace {

std::filesystem::path OwnFolder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string FakeCudaFolder() {
  const char* const folder = std::getenv("GRUS_FAKE_CUDA_FOLDER");
  return folder != nullptr ? folder : (OwnFolder() / "fake-cuda").string();
}

ClientProcess::ClientProcess(std::vector<std::string> environment, std::vector<std::string> options,
                             const std::string& program) {
  int to_it[2], from_it[2];
  if (pipe2(to_it, O_CLOEXEC) != 0 || pipe2(from_it, O_CLOEXEC) != 0) throw std::runtime_error("no pipes");
  const std::string path = OwnFolder() / program;
  options.insert(options.begin(), path);
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  environment.push_back("LD_LIBRARY_PATH=" + FakeCudaFolder());
  const std::vector<char*> arguments = Pointers(options), variables = Pointers(environment);
  pid_ = fork();
  if (pid_ == 0) {
    dup2(to_it[0], STDIN_FILENO);
    dup2(from_it[1], STDOUT_FILENO);
    execve(path.c_str(), arguments.data(), variables.data());
    _exit(127);
  }
  close(to_it[0]);
  close(from_it[1]);
  input_ = to_it[1];
  output_ = from_it[0];
}

ClientProcess::~ClientProcess() {
  if (!has_ended_) Kill();
  if (input_ >= 0) close(input_);
  close(output_);
}

void ClientProcess::Tell(const std::string& command) {
  const std::string line = command + "\n";
  if (write(input_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::runtime_error("the client does not listen");
  }
}

std::string ClientProcess::Hear() {
  std::string line;
  for (char byte = 0; read(output_, &byte, 1) == 1 && byte != '\n';) line += byte;
  return line;
}

std::string ClientProcess::Ask(const std::string& command) {
  Tell(command);
  return Hear();
}

std::uint64_t ClientProcess::Get(const std::string& command, int nth) {
  const std::string answer = Ask(command);
  std::istringstream words(answer);
  std::string word;
  words >> word;
  if (word != "ok") throw std::runtime_error(command + ": " + answer);
  for (int i = 0; i < nth; ++i) words >> word;
  return std::strtoull(word.c_str(), nullptr, 0);
}

void ClientProcess::Kill() {
  kill(pid_, SIGKILL);
  Wait();
}

int ClientProcess::Wait() {
  if (input_ >= 0) close(input_);
  input_ = -1;
  int status = 0;
  if (!has_ended_) waitpid(pid_, &status, 0);
  has_ended_ = true;
  return status;
}

}  // namespace grus::cuda::fake

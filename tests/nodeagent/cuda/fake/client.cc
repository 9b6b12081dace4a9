// SPDX-License-Identifier: Apache-2.0
// A program that uses the driver, without NVIDIA's runtime: reads commands from stdin, one a line, and answers each
// with a line on stdout: "ok VALUE…" or "error CODE".
//
//   client [--by=WAY] [--library=NAME] [--version=N] [--per-thread]     see client_driver.h
//
// The driver is not opened before the first command. Besides the commands of client_*.cc there are
//   pid           its number
//   start [GPU]   init and retain
//   fork          a child that goes on with what follows; the parent waits for it, and ends as it does
//   exec          itself, anew, with the same options
//   crash         SIGKILL to itself
//   times N LINE  the command N times, and the last answer
//   aside LINE    the command, by a thread of its own, in the same context
//   beside LINE   the same without waiting, for one at a time,
//   join          whose answer this is
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <thread>

#include "tests/nodeagent/cuda/fake/client_commands.h"
#include "tests/nodeagent/cuda/fake/client_driver.h"

namespace grus::cuda::fake {

std::uint64_t Number(const Words& words, std::size_t nth, std::uint64_t otherwise) {
  return nth < words.size() ? std::strtoull(words[nth].c_str(), nullptr, 0) : otherwise;
}

std::string Answer(CUresult result, const std::string& values) {
  if (result != kSuccess) return "error " + std::to_string(result);
  return values.empty() ? "ok" : "ok " + values;
}

std::string Hex(std::uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

namespace {

// A byte at a time: what follows must still be there for a child, or for the program that this one becomes.
bool ReadLine(std::string& line) {
  line.clear();
  for (char byte = 0; read(STDIN_FILENO, &byte, 1) == 1;) {
    if (byte == '\n') return true;
    line += byte;
  }
  return !line.empty();
}

class Client {
 public:
  Client(const Way& way, char** arguments) : way_(way), arguments_(arguments) {
    AddMemoryCommands(commands_);
    AddBlockCommands(commands_);
    AddWorkCommands(commands_);
    AddRandomCommands(commands_);
    commands_["pid"] = [](const Words&) { return Answer(kSuccess, std::to_string(getpid())); };
    commands_["start"] = [this](const Words& words) {
      const std::string answer = commands_["init"](words);
      return answer == "ok" ? commands_["retain"](words) : answer;
    };
    commands_["fork"] = [this](const Words&) {
      if (const pid_t child = fork(); child > 0) {
        int status = 0;
        waitpid(child, &status, 0);
        std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
      }
      if (beside_.joinable()) beside_.detach();  // It is not there.
      alarm(30);                                 // What it waits for may never come.
      return Answer(kSuccess, std::to_string(getpid()));
    };
    commands_["exec"] = [this](const Words&) {
      execv("/proc/self/exe", arguments_);
      return std::string("error exec");
    };
    commands_["crash"] = [](const Words&) {
      kill(getpid(), SIGKILL);
      return std::string();
    };
    commands_["times"] = [this](const Words& words) {
      std::string answer = "error usage";
      for (std::uint64_t i = 0; i < Number(words, 0); ++i) answer = Run(Words(words.begin() + 1, words.end()));
      return answer;
    };
    commands_["beside"] = [this](const Words& words) {
      CUcontext context = nullptr;
      const CUresult result = Call<decltype(cuCtxGetCurrent)>("cuCtxGetCurrent", &context);
      beside_ = std::thread([this, words, context] {
        Call<decltype(cuCtxSetCurrent)>("cuCtxSetCurrent", context);
        answer_ = Run(words);
      });
      return Answer(result);
    };
    commands_["join"] = [this](const Words&) {
      beside_.join();
      return answer_;
    };
    commands_["aside"] = [this](const Words& words) {
      commands_["beside"](words);
      return commands_["join"](words);
    };
  }

  std::string Run(const Words& words) {
    if (words.empty()) return "error usage";
    if (!is_open_) {
      if (const std::string problem = OpenDriver(way_); !problem.empty()) return "error " + problem;
      is_open_ = true;
    }
    const auto command = commands_.find(words[0]);
    if (command == commands_.end()) return "error unknown command " + words[0];
    return command->second(Words(words.begin() + 1, words.end()));
  }

 private:
  const Way way_;
  char** const arguments_;
  Commands commands_;
  bool is_open_ = false;
  std::thread beside_;
  std::string answer_;  // Of `beside_`, once it has ended.
};

}  // namespace

}  // namespace grus::cuda::fake

int main(int, char** argv) {
  using namespace grus::cuda::fake;  // NOLINT: a program of its own.
  Way way;
#ifdef GRUS_LINKED
  way.name = "linked";
#endif
  for (char** argument = argv + 1; *argument != nullptr; ++argument) {
    const std::string text = *argument;
    const std::string value = text.substr(text.find('=') + 1);
    if (text.starts_with("--by=")) way.name = value;
    if (text.starts_with("--library=")) way.library = value;
    if (text.starts_with("--version=")) way.version = std::stoi(value);
    if (text == "--per-thread") way.is_per_thread = true;
  }
  Client client(way, argv);
  for (std::string line; ReadLine(line);) {
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    std::cout << client.Run(words) << std::endl;
  }
}

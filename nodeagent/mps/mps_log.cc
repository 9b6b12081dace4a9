// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/mps/mps_log.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <utility>

#include "clientlib/base/lower_case.h"

namespace grus {
namespace {

constexpr std::array kFiles = {"control.log", "server.log"};
constexpr std::uint64_t kMostBytes = 256 << 10;
constexpr std::size_t kLongestLine = 512;

std::uint64_t SizeOf(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

bool HasWord(const std::string& text, std::string_view word) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && std::isalnum(static_cast<unsigned char>(text[at]));
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  }
  return false;
}

}  // namespace

bool SaysFault(std::string_view line) {
  const std::string text = kube::LowerCase(line);
  if (HasWord(text, "fatal") || HasWord(text, "killed by signal") || HasWord(text, "fault")) return true;
  constexpr std::string_view kExited = "exited with status ";
  const std::size_t exited = text.find(kExited);
  if (exited == std::string::npos) return false;
  const std::string status = text.substr(exited + kExited.size());
  return !status.starts_with('0') && !status.empty();
}

MpsLog::MpsLog(std::string folder) : folder_(std::move(folder)) {
  for (const char* name : kFiles) read_[name].bytes = SizeOf(folder_ + "/" + name);
}

std::vector<std::string> MpsLog::NewFaults() {
  std::vector<std::string> faults;
  for (auto& [name, read] : read_) {
    const std::string path = folder_ + "/" + name;
    const std::uint64_t size = SizeOf(path);
    if (size < read.bytes) read = {};  // It has begun anew.
    if (size == read.bytes) continue;
    std::string text(std::min(size - read.bytes, kMostBytes), '\0');
    std::ifstream file(path, std::ios::binary);
    file.seekg(static_cast<std::streamoff>(read.bytes));
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    read.bytes += text.size();
    for (const char c : text) {
      if (c != '\n') {
        if (read.begun.size() < kLongestLine) read.begun.push_back(c);
        continue;
      }
      if (SaysFault(read.begun)) faults.push_back(read.begun);
      read.begun.clear();
    }
  }
  return faults;
}

}  // namespace grus

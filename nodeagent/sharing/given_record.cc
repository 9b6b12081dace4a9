// SPDX-License-Identifier: Apache-2.0
#include "nodeagent/sharing/given_record.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

namespace grus {
namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "given";

// "0-299,310": ranges are short where single ids are a thousand.
std::string TextOf(const std::set<std::int64_t>& numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::int64_t first = *at;
    std::int64_t last = first;
    while (++at != numbers.end() && *at == last + 1) last = *at;
    text.append(text.empty() ? "" : ",").append(std::to_string(first));
    if (last != first) text.append("-").append(std::to_string(last));
  }
  return text;
}

std::optional<std::int64_t> NumberOf(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  constexpr std::int64_t kMost = 1 << 20;
  const bool is_number = error == std::errc() && end == text.data() + text.size() && number >= 0 && number < kMost;
  return is_number ? std::optional(number) : std::nullopt;
}

std::set<std::int64_t> NumbersOf(const std::string& text) {
  std::set<std::int64_t> numbers;
  std::istringstream ranges(text);
  for (std::string range; std::getline(ranges, range, ',');) {
    const std::size_t dash = range.find('-');
    const auto first = NumberOf(std::string_view(range).substr(0, dash));
    const auto last = dash == std::string::npos ? first : NumberOf(std::string_view(range).substr(dash + 1));
    if (!first || !last) continue;
    for (std::int64_t number = *first; number <= *last; ++number) numbers.insert(number);
  }
  return numbers;
}

}  // namespace

GivenRecord::GivenRecord(std::string folder, Enforcement way) : folder_(std::move(folder)), way_(way) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    if (!entry.is_directory(ignored)) continue;
    Ids& ids = given_[entry.path().filename()];
    std::ifstream file(entry.path() / kFile);
    for (std::string name, text; file >> name >> text;) {
      const auto found = std::ranges::find(kPartResources, name, [](PartResource one) { return NameOf(one); });
      if (found != kPartResources.end()) ids[*found] = NumbersOf(text);
    }
  }
}

kube::Status GivenRecord::Set(PartResource resource, const std::vector<PartId>& ids, bool is_given_so) {
  const std::scoped_lock lock(mutex_);
  for (const std::string& gpu : GpusOf(ids)) {
    const auto known = given_.find(gpu);
    Ids next = known == given_.end() ? Ids() : known->second;
    for (const PartId& id : ids) {
      if (id.gpu != gpu) continue;
      if (is_given_so) next[resource].insert(id.number);
      else if (const auto found = next.find(resource); found != next.end()) found->second.erase(id.number);
    }
    if (known == given_.end() ? !is_given_so : known->second == next) continue;
    if (kube::Status written = Write(gpu, next); !written) return written;
    given_[gpu] = std::move(next);
  }
  return {};
}

bool GivenRecord::HasAll(PartResource resource, const std::vector<PartId>& ids) const {
  const std::scoped_lock lock(mutex_);
  const auto has = [&](const PartId& id) {
    const auto gpu = given_.find(id.gpu);
    if (gpu == given_.end()) return false;
    const auto numbers = gpu->second.find(resource);
    return numbers != gpu->second.end() && numbers->second.contains(id.number);
  };
  return !ids.empty() && std::ranges::all_of(ids, has);
}

bool GivenRecord::HasAll(const HeldParts& part) const {
  return !part.ids.empty() && part.claimed.empty() &&
         std::ranges::all_of(part.ids, [&](const auto& one) { return HasAll(one.first, one.second); });
}

std::vector<std::string> GivenRecord::gpus() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> gpus;
  for (const auto& [gpu, ids] : given_) gpus.push_back(gpu);
  return gpus;
}

kube::Status GivenRecord::Write(const std::string& gpu, const Ids& ids) const {
  const fs::path folder = fs::path(folder_) / gpu, path = folder / kFile, next = folder / (std::string(kFile) + ".new");
  std::error_code error;
  fs::create_directories(folder, error);
  {
    std::ofstream file(next, std::ios::trunc);
    for (const auto& [resource, numbers] : ids) {
      if (!numbers.empty()) file << NameOf(resource) << ' ' << TextOf(numbers) << '\n';
    }
    file.close();
    if (!file) error = std::make_error_code(std::errc::io_error);
  }
  if (!error) fs::rename(next, path, error);
  if (!error) return {};
  return kube::Error(kube::ErrorCode::kUnavailable, "write " + path.string() + ": " + error.message() +
                                                        "; the agent must be able to write to its folder for " +
                                                        std::string(NameOf(way_)));
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/spawn_words.h"

#include <unistd.h>

#include <string_view>

namespace kube {

std::vector<std::string> EnvironmentWith(const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    bool is_replaced = false;
    for (const auto& [name, value] : added) {
      is_replaced = is_replaced || (text.starts_with(name) && text.substr(name.size()).starts_with('='));
    }
    if (!is_replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> PointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace kube

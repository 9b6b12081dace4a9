// SPDX-License-Identifier: Apache-2.0
// The words that posix_spawn() and execve() take. Pure, but for the environment that is read: thread-safe as long as
// nobody changes it.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace kube {

// Our environment as "NAME=VALUE", with these variables added; they replace.
std::vector<std::string> EnvironmentWith(const std::vector<std::pair<std::string, std::string>>& added);

// To each text, then null. They are valid as long as `texts` is unchanged.
std::vector<char*> PointersTo(std::vector<std::string>& texts);

}  // namespace kube

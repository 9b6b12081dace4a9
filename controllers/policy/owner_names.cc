// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/owner_names.h"

#include <algorithm>

namespace grus {
namespace {

constexpr std::string_view kLauncher = "/launcher";

// No namespace has a dot in its name; API groups have.
std::string_view WithoutGroup(std::string_view owner) {
  const std::size_t slash = owner.find('/');
  return owner.substr(0, slash).find('.') == std::string_view::npos ? owner : owner.substr(slash + 1);
}

}  // namespace

std::string LauncherOwner(const std::string& job) { return job + std::string(kLauncher); }

std::string WithoutLauncher(const std::string& owner) {
  const std::string_view rest = WithoutGroup(owner);
  const bool is_launcher = rest.ends_with(kLauncher) && std::ranges::count(rest, '/') == 2;
  return is_launcher ? owner.substr(0, owner.size() - kLauncher.size()) : owner;
}

std::string OwnerOfOthers(std::string_view ns) { return std::string(ns) + "/"; }
bool IsOwnerOfOthers(std::string_view owner) { return owner.ends_with('/'); }

std::string_view NamespaceOf(std::string_view owner) {
  const std::string_view rest = WithoutGroup(owner);
  return rest.substr(0, rest.find('/'));
}

}  // namespace grus

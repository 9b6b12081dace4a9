// SPDX-License-Identifier: Apache-2.0
#include "bench/sim/options.h"

#include <algorithm>

namespace grus {
namespace {

kube::Error Wrong(std::string_view option, std::string_view what) {
  return kube::Error(kube::ErrorCode::kInvalidArgument, std::string(option) + std::string(what));
}

}  // namespace

kube::Result<Options> ReadOptions(std::span<const std::string_view> arguments, std::span<const std::string_view> known,
                                  std::span<const std::string_view> flags) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view option = arguments[i];
    const std::string_view name = option.starts_with("--") ? option.substr(2) : "";
    const bool is_flag = std::ranges::find(flags, name) != flags.end();
    if (!is_flag && std::ranges::find(known, name) == known.end()) {
      return Wrong(option, " is no option of this command");
    }
    if (!is_flag && ++i == arguments.size()) return Wrong(option, " needs a value");
    if (!options.emplace(name, is_flag ? "" : arguments[i]).second) return Wrong(option, " is given twice");
  }
  return options;
}

kube::Result<std::string> Required(const Options& options, std::string_view name) {
  const auto found = options.find(name);
  if (found == options.end()) return Wrong("--" + std::string(name), " is missing");
  return found->second;
}

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
#include "controllers/telemetry/stated_totals.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace grus {
namespace {

using std::string_view;

// Without the dashes in front, and with "_" for "-". Not "steps": often those of an epoch.
constexpr string_view kEpochs[] = {"epochs",     "num_epochs",       "n_epochs",  "nepochs",
                                   "max_epochs", "num_train_epochs", "max_epoch", "total_epochs"};
constexpr string_view kSteps[] = {"max_steps", "num_train_steps", "max_train_steps", "train_steps", "total_steps",
                                  "max_iters", "train_iters",     "num_iters",       "max_iter"};

// 0: it is no whole number above zero.
double CountIn(string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() && count > 0 ? static_cast<double>(count) : 0;
}

}  // namespace

StatedTotals TotalsOf(std::span<const std::string> command) {
  StatedTotals totals;
  for (std::size_t at = 0; at < command.size(); ++at) {
    if (!command[at].starts_with("-")) continue;
    const std::size_t equals = std::min(command[at].find('='), command[at].size());
    std::string name = command[at].substr(0, equals);
    name.erase(0, name.find_first_not_of('-'));
    std::ranges::replace(name, '-', '_');
    const bool is_epochs = std::ranges::count(kEpochs, name) > 0;
    if (!is_epochs && std::ranges::count(kSteps, name) == 0) continue;
    const bool is_next = equals == command[at].size();
    if (is_next && at + 1 == command.size()) continue;
    (is_epochs ? totals.epochs : totals.steps) =
        CountIn(is_next ? string_view(command[at + 1]) : string_view(command[at]).substr(equals + 1));
  }
  return totals;
}

}  // namespace grus

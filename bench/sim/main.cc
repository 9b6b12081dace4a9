// SPDX-License-Identifier: Apache-2.0
// grus-sim: replays public traces through the policies of grus. The first argument says which trace.
#include <algorithm>
#include <iostream>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "bench/sim/openb.h"
#include "bench/sim/pollux.h"

namespace {

struct Command {
  std::string_view name;
  int (*run)(std::span<const std::string_view> arguments, std::ostream& out, std::ostream& error);
  const char* help;
};

constexpr Command kCommands[] = {
    {"openb", grus::RunOpenb, grus::kOpenbHelp},
    {"pollux", grus::RunPollux, grus::kPolluxHelp},
};

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const std::string_view wanted = arguments.empty() ? "" : arguments[0];
  const auto* command = std::ranges::find(kCommands, wanted, &Command::name);
  if (command != std::end(kCommands)) return command->run(std::span(arguments).subspan(1), std::cout, std::cerr);

  const bool asks_for_help = wanted == "--help";
  std::ostream& out = asks_for_help ? std::cout : std::cerr;
  if (!asks_for_help) out << "grus-sim: \"" << wanted << "\" is no trace; the first argument must name one of these\n";
  for (const Command& each : kCommands) out << each.help;
  return asks_for_help ? 0 : 2;
}

// SPDX-License-Identifier: Apache-2.0
// What the client does when it is told to: each command calls the driver and says what came back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "nodeagent/cuda/driver_abi.h"

namespace grus::cuda::fake {

using Words = std::vector<std::string>;  // What follows the command.
using Commands = std::map<std::string, std::function<std::string(const Words&)>>;

void AddMemoryCommands(Commands& commands);
void AddBlockCommands(Commands& commands);
void AddWorkCommands(Commands& commands);
void AddRandomCommands(Commands& commands);

// The nth word as a number, decimal or 0x…; `otherwise` if there is none.
std::uint64_t Number(const Words& words, std::size_t nth, std::uint64_t otherwise = 0);
// "ok" and the values, in hex if they are handles and addresses; or "error CODE".
std::string Answer(CUresult result, const std::string& values = "");
std::string Hex(std::uint64_t value);
// The same of one handle or address.
template <typename Handle>
std::string AnswerHandle(CUresult result, Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return Answer(result, Hex(reinterpret_cast<std::uint64_t>(handle)));
  } else {
    return Answer(result, Hex(handle));
  }
}
template <typename Handle>
Handle AsHandle(std::uint64_t value) {
  return reinterpret_cast<Handle>(value);
}

}  // namespace grus::cuda::fake

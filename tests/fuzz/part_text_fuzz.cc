// SPDX-License-Identifier: Apache-2.0
// What kubectl grus top reads of parts of GPUs: metrics and annotations. Rules: amounts are ones that a GPU can have,
// what is used is a number, and lines in any order say of as many containers.
#include <cmath>
#include <string>

#include "controllers/kubectl/part_objects.h"
#include "controllers/kubectl/part_uses.h"
#include "tests/fuzz/check.h"

namespace {

void CheckAmount(std::int64_t amount, std::int64_t most) {
  fuzz::Require(amount >= 0 && amount <= most, "an amount is one that a GPU can have");
}

std::string Reversed(std::string_view text) {
  std::string reversed;
  while (!text.empty()) reversed = std::string(fuzz::Cut(text, '\n')) + "\n" + reversed;
  return reversed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  const grus::PartUses uses = grus::ParsePartUses(text);
  for (const auto& [user, use] : uses) {
    fuzz::Require(!user.pod.name.empty() && !user.gpu.empty(), "who uses it has a name");
    fuzz::Require(std::isfinite(use.memory_bytes.value_or(0)) && use.memory_bytes.value_or(0) >= 0,
                  "bytes are a number");
  }
  if (size < 4096)
    fuzz::Require(grus::ParsePartUses(Reversed(text)).size() == uses.size(), "their order does not matter");
  if (const auto gpus = grus::ParseInventory(text)) {
    for (const grus::OfferedGpu& gpu : *gpus) CheckAmount(gpu.memory_mib, std::int64_t{1} << 30);
  }
  if (const auto parts = grus::ParseNotedParts(text)) {
    for (const grus::NotedPart& part : *parts) {
      CheckAmount(part.milli, 1000);
      CheckAmount(part.memory_mib, std::int64_t{1} << 30);
    }
  }
  return 0;
}

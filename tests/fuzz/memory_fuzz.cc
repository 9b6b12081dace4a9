// SPDX-License-Identifier: Apache-2.0
// Objects of up to 3 MiB that repeat a few bytes: a tenant's shortest way to fill the memory that all share.
// An input is one line of two letters, for the kind and for the size, then what stands before the repeated part, the
// part, and what stands behind; each '#' in the part becomes another number each time. Rule: what is kept of an object
// takes at most 8 times its text, and a few pages.
#include <sanitizer/allocator_interface.h>

#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "tests/fuzz/kinds.h"

namespace {

constexpr std::size_t kTexts[] = {1UL << 10, 16UL << 10, 256UL << 10, 3UL << 20};
constexpr std::size_t kPages = 32UL << 10;      // For the object itself, and each field that is opaque.
constexpr std::size_t kRemembered = 5UL << 18;  // All strings that CompactString::Shared() may keep.
constexpr std::size_t kMostParts = 1UL << 20;

std::string Repeat(std::string_view head, std::string_view part, std::string_view tail, std::size_t size) {
  std::string text(head);
  for (std::size_t number = 0; text.size() + tail.size() < size && number < kMostParts; ++number) {
    if (number > 0) text.push_back(',');
    for (const char c : part) c == '#' ? text.append(std::to_string(number)) : text.append(1, c);
  }
  return text.append(tail);
}

// In a thread of its own, whose buffers go with it. Null if it is no such object.
std::shared_ptr<kube::Object> Read(const kube::Kind& kind, std::string_view text) {
  std::shared_ptr<kube::Object> object;
  std::thread([&] {
    if (auto read = kube::DecodeObject(kind, text)) object = *std::move(read);
  }).join();
  return object;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view input = fuzz::Text(data, size);
  const std::string_view choice = fuzz::Cut(input, '\n');
  if (choice.size() != 2) return -1;
  const kube::Kind& kind = *fuzz::kKinds[static_cast<std::uint8_t>(choice[0] - 'a') % std::size(fuzz::kKinds)];
  const std::size_t wanted = kTexts[static_cast<std::uint8_t>(choice[1] - '0') % std::size(kTexts)];
  const std::string_view head = fuzz::Cut(input, '\n'), part = fuzz::Cut(input, '\n');
  const std::string text = Repeat(head, part, input, wanted);

  (void)Read(kind, "{}");  // What the kind makes once.
  const std::size_t before = __sanitizer_get_current_allocated_bytes();
  std::shared_ptr<kube::Object> object = Read(kind, text);
  const std::size_t with = __sanitizer_get_current_allocated_bytes();
  object.reset();
  const std::size_t after = __sanitizer_get_current_allocated_bytes();
  fuzz::Require(with <= after + 8 * text.size() + kPages, "an object takes at most 8 times its text");
  fuzz::Require(with <= before + 8 * text.size() + kPages + kRemembered, "nothing else is kept of it");
  return 0;
}

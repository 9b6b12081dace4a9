// SPDX-License-Identifier: Apache-2.0
#include "crds/types/part_memory.h"

#include <charconv>
#include <string_view>

#include "crds/types/sharing_names.h"

namespace api {
namespace {

constexpr std::size_t kMostDigits = 8;  // 95 TiB.

std::int64_t MiBSaidBy(const kube::ObjectMeta& pod, const char* annotation) {
  if (!pod.annotations.contains(annotation)) return 0;
  const std::string_view text = pod.Annotation(annotation);
  std::int64_t mib = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), mib);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  return is_number && mib > 0 && text.size() <= kMostDigits ? mib : kSenselessMemory;
}

}  // namespace

std::int64_t MemoryMiBSaidBy(const kube::ObjectMeta& pod) { return MiBSaidBy(pod, kMemoryMiBAnnotation); }
std::int64_t PagedMiBSaidBy(const kube::ObjectMeta& pod) { return MiBSaidBy(pod, kPagedMiBAnnotation); }

}  // namespace api

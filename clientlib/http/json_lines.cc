// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/json_lines.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace kube {
namespace {

constexpr std::size_t kKeptBytes = 1UL << 20;  // A larger buffer is freed after its line.

// Whether a line of `chunk` is longer than `limit`. The first has `begun` bytes from earlier chunks.
bool HasLineOver(std::size_t limit, std::size_t begun, std::string_view chunk) {
  while (begun + chunk.size() > limit) {
    const std::size_t line_bytes = std::min(chunk.find('\n'), chunk.size());
    if (begun + line_bytes > limit) return true;
    begun = 0;
    chunk.remove_prefix(line_bytes + 1);
  }
  return false;
}

}  // namespace

Status JsonLines::Append(std::string chunk) {
  assert(at_ == chunk_.size() && "Append() before Next() returned nullopt");
  DropHandedOut();
  if (HasLineOver(limit_, partial_.size(), chunk)) {
    return Error(ErrorCode::kTooLarge, "a line is longer than " + std::to_string(limit_) + " bytes");
  }
  chunk_ = std::move(chunk);
  at_ = 0;
  return {};
}

std::optional<std::string_view> JsonLines::Next() {
  DropHandedOut();
  while (at_ < chunk_.size()) {
    const std::size_t end = chunk_.find('\n', at_);
    if (end == std::string::npos) {
      partial_.append(chunk_, at_);
      at_ = chunk_.size();
      break;
    }
    std::string_view line(chunk_.data() + at_, end - at_);
    at_ = end + 1;
    if (!partial_.empty()) {
      partial_.append(line);
      is_handed_out_ = true;
      line = partial_;
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) return line;
    DropHandedOut();
  }
  return std::nullopt;
}

void JsonLines::DropHandedOut() {
  if (!is_handed_out_) return;
  is_handed_out_ = false;
  partial_.clear();
  if (partial_.capacity() > kKeptBytes) partial_.shrink_to_fit();
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/watch_event.h"

#include <utility>

namespace kube {
namespace {

WatchEventType TypeOf(std::string_view name) {
  static constexpr std::pair<std::string_view, WatchEventType> kTypes[] = {
      {"ADDED", WatchEventType::kAdded},     {"MODIFIED", WatchEventType::kModified},
      {"DELETED", WatchEventType::kDeleted}, {"BOOKMARK", WatchEventType::kBookmark},
      {"ERROR", WatchEventType::kError},
  };
  for (const auto& [text, type] : kTypes) {
    if (text == name) return type;
  }
  return WatchEventType::kUnknown;
}

// Skips one JSON value from `at`: strings with escapes, and brackets outside strings. npos if it does not end.
std::size_t EndOfValue(std::string_view text, std::size_t at) {
  int depth = 0;
  bool is_in_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (is_in_string) {
      if (c == '\\') ++at;
      else if (c == '"') {
        is_in_string = false;
        if (depth == 0) return at + 1;
      }
      continue;
    }
    if (c == '"') is_in_string = true;
    else if (c == '{' || c == '[') ++depth;
    else if (c == '}' || c == ']') {
      if (depth == 0) return at;  // The bracket that encloses a number or a word ends it.
      if (--depth == 0) return at + 1;
    } else if (c == ',' && depth == 0) return at;
  }
  return std::string_view::npos;
}

std::size_t SkipSpace(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n')) ++at;
  return at;
}

Error BadLine(std::string_view what) { return Error(ErrorCode::kDecode, std::string(what)).with("watch event"); }

}  // namespace

Result<WatchEvent> ReadWatchEvent(std::string_view line) {
  static constexpr std::string_view kStart = R"({"type":")", kMiddle = R"(","object":)";
  if (line.starts_with(kStart)) {
    const std::size_t quote = line.find('"', kStart.size());
    if (quote != std::string_view::npos && line.substr(quote).starts_with(kMiddle)) {
      const std::size_t begin = quote + kMiddle.size();
      const std::size_t end = line.rfind('}');
      if (end != std::string_view::npos && end > begin) {
        return WatchEvent{TypeOf(line.substr(kStart.size(), quote - kStart.size())), line.substr(begin, end - begin)};
      }
    }
  }

  WatchEvent event;
  std::size_t at = SkipSpace(line, 0);
  if (at >= line.size() || line[at] != '{') return BadLine("no JSON object");
  ++at;
  for (;;) {
    at = SkipSpace(line, at);
    if (at < line.size() && line[at] == '}') break;
    const std::size_t name_end = EndOfValue(line, at);
    if (name_end == std::string_view::npos || line[at] != '"') return BadLine("a member without a name");
    const std::string_view name = line.substr(at + 1, name_end - at - 2);
    at = SkipSpace(line, name_end);
    if (at >= line.size() || line[at] != ':') return BadLine("a member without a value");
    at = SkipSpace(line, at + 1);
    const std::size_t value_end = EndOfValue(line, at);
    if (value_end == std::string_view::npos || value_end <= at) return BadLine("a value without an end");
    const std::string_view value = line.substr(at, value_end - at);
    if (name == "type" && value.size() >= 2) event.type = TypeOf(value.substr(1, value.size() - 2));
    if (name == "object" && !event.object.empty()) return BadLine("object given twice");
    if (name == "object") event.object = value;
    at = SkipSpace(line, value_end);
    if (at < line.size() && line[at] == ',') ++at;
    else if (at >= line.size() || line[at] != '}') return BadLine("no end");
  }
  if (event.object.empty()) return BadLine("no object");
  if (SkipSpace(line, at + 1) != line.size()) return BadLine("text after the end of the event");
  return event;
}

}  // namespace kube

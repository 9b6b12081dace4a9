// SPDX-License-Identifier: Apache-2.0
#include "clientlib/cache/watch_event.h"

#include <utility>

#include "clientlib/model/json_scan.h"

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
  JsonScan scan(line, '{');
  while (scan.Next()) {
    const std::string_view value = scan.value();
    if (scan.name() == "type" && value.size() >= 2) event.type = TypeOf(value.substr(1, value.size() - 2));
    if (scan.name() != "object") continue;
    if (!event.object.empty()) return BadLine("object given twice");
    event.object = value;
  }
  if (!scan.problem().empty()) return BadLine(scan.problem());
  if (event.object.empty()) return BadLine("no object");
  return event;
}

}  // namespace kube

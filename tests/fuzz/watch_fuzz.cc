// SPDX-License-Identifier: Apache-2.0
// JsonLines, and ReadWatchEvent() of each line. Rules: the lines do not depend on the chunks; a line that is
// an event by the grammar of JSON is read as that event.
#include <random>
#include <string>
#include <vector>

#include "clientlib/cache/watch_event.h"
#include "clientlib/http/json_lines.h"
#include "clientlib/model/json.h"
#include "clientlib/model/pod.h"
#include "tests/fuzz/check.h"

namespace {

using kube::Json;
using kube::Result;

struct Lines {
  std::vector<std::string> whole;
  bool has_rest = false;
  friend bool operator==(const Lines&, const Lines&) = default;
};

// The lines of `text`, given in chunks of up to `longest` bytes.
Lines Split(std::string_view text, std::size_t longest) {
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(text.size() + 1));
  kube::JsonLines splitter;
  Lines lines;
  while (!text.empty()) {
    const std::string_view chunk = text.substr(0, 1 + random() % longest);
    text.remove_prefix(chunk.size());
    fuzz::Require(splitter.Append(std::string(chunk)).ok(), "a short line is no error");
    while (const auto line = splitter.Next()) lines.whole.emplace_back(*line);
  }
  lines.has_rest = splitter.has_partial_line();
  return lines;
}

// An object of a type and an object, and nothing else. How the reader sees a name that is escaped is left
// open.
bool IsEvent(const Json& json, std::string_view line) {
  return json.is_object() && json.AsObject()->size() == 2 && json.Find("type") && json.Find("type")->AsString() &&
         json.Find("object") && json.Find("object")->is_object() && line.find("\\u") == std::string_view::npos;
}

void CheckLine(const std::string& line) {
  const Result<kube::WatchEvent> event = kube::ReadWatchEvent(line);
  const Result<Json> json = kube::ParseJson(line);
  const bool is_event = json && IsEvent(*json, line);
  fuzz::Require(event.ok() || !is_event, "an event is read");
  if (!event) return;
  fuzz::Require(
      event->object.data() >= line.data() && event->object.data() + event->object.size() <= line.data() + line.size(),
      "the object lies within its line");
  static_cast<void>(kube::DecodeObject(kube::KindOf<kube::Pod>(), event->object));
  if (!is_event) return;
  const Result<Json> object = kube::ParseJson(event->object);
  fuzz::Require(object.ok() && *object == *json->Find("object"), "the object is the event's");
  const bool is_added = *json->Find("type")->AsString() == "ADDED";
  fuzz::Require(is_added == (event->type == kube::WatchEventType::kAdded), "the type is the event's");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  const Lines lines = Split(text, size + 1);
  fuzz::Require(lines == Split(text, 1), "byte by byte gives the same lines");
  fuzz::Require(lines == Split(text, 16), "small chunks give the same lines");
  for (const std::string& line : lines.whole) CheckLine(line);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/model/json_scan.h"

namespace kube {
namespace {

// Behind the quote that ends a string, from behind the one that begins it; npos if it does not end. Most text is in
// strings, so it is searched for quotes.
std::size_t EndOfString(std::string_view text, std::size_t begin) {
  for (std::size_t at = begin; (at = text.find('"', at)) != std::string_view::npos; ++at) {
    std::size_t escapes = 0;
    while (at - escapes > begin && text[at - escapes - 1] == '\\') ++escapes;
    if (escapes % 2 == 0) return at + 1;
  }
  return std::string_view::npos;
}

// Skips one JSON value from `at`: strings with escapes, and brackets outside strings. npos if it does not end.
std::size_t EndOfValue(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  while (at < text.size()) {
    switch (text[at]) {
      case '"':
        at = EndOfString(text, at + 1);
        if (at == std::string_view::npos || depth == 0) return at;
        continue;
      case '{':
      case '[': ++depth; break;
      case '}':
      case ']':
        if (depth == 0) return at;  // The bracket that encloses a number or a word ends it.
        if (--depth == 0) return at + 1;
        break;
      case ',':
        if (depth == 0) return at;
        break;
      default: break;
    }
    ++at;
  }
  return std::string_view::npos;
}

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

JsonScan::JsonScan(std::string_view text, char open) : text_(text), is_object_(open == '{') {
  SkipSpace();
  if (Peek() == open) ++at_;
  else Fail(is_object_ ? "no JSON object" : "no JSON array");
}

bool JsonScan::Next() {
  if (has_ended_) return false;
  SkipSpace();
  if (Peek() == (is_object_ ? '}' : ']')) return End();
  if (!is_first_) {
    if (Peek() != ',') return Fail("no end");
    ++at_;
    SkipSpace();
  }
  is_first_ = false;
  if (is_object_) {
    const std::size_t end = EndOfValue(text_, at_);
    if (Peek() != '"' || end == std::string_view::npos) return Fail("a member without a name");
    name_ = text_.substr(at_ + 1, end - at_ - 2);
    at_ = end;
    SkipSpace();
    if (Peek() != ':') return Fail("a member without a value");
    ++at_;
    SkipSpace();
  }
  const std::size_t end = EndOfValue(text_, at_);
  if (end == std::string_view::npos || end == at_) return Fail("a value without an end");
  value_ = text_.substr(at_, end - at_);
  at_ = end;
  while (IsSpace(value_.back())) value_.remove_suffix(1);
  return true;
}

void JsonScan::SkipSpace() {
  while (IsSpace(Peek())) ++at_;
}

bool JsonScan::End() {
  ++at_;
  SkipSpace();
  if (at_ != text_.size()) return Fail("text after the end");
  has_ended_ = true;
  return false;
}

bool JsonScan::Fail(std::string_view problem) {
  problem_ = problem;
  has_ended_ = true;
  return false;
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
// Walks over the members of a JSON object, or the items of an array, without reading the values.
//
// Finds where each value ends by its brackets and quotes alone, at any depth and without recursion; whoever uses a
// value parses it. So one value that cannot be read does not hide the others.
//
//   for (JsonScan scan(text, '{'); scan.Next();) Use(scan.name(), scan.value());
#pragma once

#include <string_view>

namespace kube {

class JsonScan {
 public:
  // `open` is '{' or '['. `text` must outlive the scan.
  JsonScan(std::string_view text, char open);

  // The next member or item; false at the end, and at the first problem.
  bool Next();
  std::string_view name() const { return name_; }    // Without its quotes, escapes as they are; empty in an array.
  std::string_view value() const { return value_; }  // Without the space around it.
  // What is wrong with the text; empty while nothing is.
  std::string_view problem() const { return problem_; }

 private:
  void SkipSpace();
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool End();
  bool Fail(std::string_view problem);

  const std::string_view text_;
  const bool is_object_;
  std::size_t at_ = 0;
  bool is_first_ = true, has_ended_ = false;
  std::string_view name_, value_, problem_;
};

}  // namespace kube

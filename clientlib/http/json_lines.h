// SPDX-License-Identifier: Apache-2.0
// Cuts a watch stream into its lines, however the bytes were chunked.
//
//   JsonLines lines;
//   lines.Append(*std::move(bytes));
//   while (auto line = lines.Next()) Decode(*line);
//
// A line that lies whole in one chunk is a view into it; only one that spans chunks is put together in a
// buffer. The API states no limit for a line, so ours is generous: an object has at most a few MiB. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"

namespace kube {

class JsonLines {
 public:
  explicit JsonLines(std::size_t max_line_bytes = 64UL << 20) : limit_(max_line_bytes) {}

  // Takes the next bytes of the stream. kTooLarge: a line over the limit; do not use this object any more. REQUIRES:
  // Next() has returned nullopt since the last Append().
  Status Append(std::string chunk);

  // The next whole line without its line end; empty lines are skipped. Valid until the next call of Append()
  // or Next(). nullopt: more bytes are needed.
  std::optional<std::string_view> Next();

  // True if a stream that ends now ends within a line.
  bool has_partial_line() const { return !partial_.empty() && !is_handed_out_; }

 private:
  void DropHandedOut();

  const std::size_t limit_;
  std::string chunk_;  // The newest bytes; those before at_ are consumed.
  std::size_t at_ = 0;
  std::string partial_;         // The beginning of the current line, from earlier chunks.
  bool is_handed_out_ = false;  // partial_ was returned by Next().
};

}  // namespace kube

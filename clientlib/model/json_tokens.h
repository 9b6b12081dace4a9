// SPDX-License-Identifier: Apache-2.0
// A JSON text as a flat row of tokens: what both the typed reader and Json are built from.
//
// 16 bytes per token, in memory that is reused for the next text; strings stay in place in a private copy of the text.
// Any value can be skipped without looking inside. Depth, size, UTF-8 and numbers are checked here, so the tokens are
// always well-formed.
// Not thread-safe; one per thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "clientlib/model/json.h"

namespace kube {

struct JsonToken {
  enum class Type : std::uint8_t { kNull, kBool, kInt, kDouble, kString, kArray, kObject };

  union {
    const char* text;         // kString
    std::int64_t integer;     // kInt, kBool
    double number;            // kDouble
    std::uint64_t count = 0;  // kArray: items; kObject: members.
  };
  std::uint32_t size = 1;  // kString: bytes. kArray, kObject: tokens, this one and all inside.
  Type type = Type::kNull;

  bool is_null() const { return type == Type::kNull; }
  std::string_view string() const { return {text, size}; }  // REQUIRES: kString.
  // The token after this value. In an object, a key (kString) stands before each value.
  const JsonToken* next() const { return this + (type >= Type::kArray ? size : 1); }
  const JsonToken* first() const { return this + 1; }  // Of an array or object; next() if it is empty.
};

// How deep an object may nest: what kube-apiserver reads (maxNestingDepth in sigs.k8s.io/json), so that whatever it has
// stored can be read. No code recurses over tokens to this depth.
inline constexpr int kApiDepth = 10'000;

class JsonTokens {
 public:
  // Drops what typed objects never hold: the values of managedFields in metadata, and of kubectl's last-applied
  // annotation, become null.
  enum class Filter { kNone, kManagement };

  // The first token, valid until the next call. Errors: kDecode with the byte offset, kTooLarge.
  Result<const JsonToken*> Parse(std::string_view text, const JsonLimits& limits, Filter filter);

 private:
  std::vector<char> text_;
  std::vector<JsonToken> tokens_;
};

// The calling thread's own.
JsonTokens& ThreadJsonTokens();

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
// ParseJson() and ToText(). Rules: what was read, written and read again is equal and is written the same; no
// object holds a key twice; a limit refuses or changes nothing.
#include <algorithm>
#include <vector>

#include "clientlib/model/json.h"
#include "tests/fuzz/check.h"

namespace {

using kube::Json;
using kube::Result;

bool HasKeyTwice(const Json::Object& members) {
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : members) keys.push_back(key);
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) != keys.end();
}

// How many values and keys there are.
std::size_t CountOf(const Json& value) {
  std::size_t count = 1;
  if (const Json::Array* items = value.AsArray()) {
    for (const Json& item : *items) count += CountOf(item);
  } else if (const Json::Object* members = value.AsObject()) {
    for (const auto& [key, member] : *members) count += 1 + CountOf(member);
  }
  return count;
}

// How deep arrays and objects are nested.
int DepthOf(const Json& value) {
  int inner = 0;
  if (const Json::Array* items = value.AsArray()) {
    for (const Json& item : *items) inner = std::max(inner, DepthOf(item));
    return inner + 1;
  }
  if (const Json::Object* members = value.AsObject()) {
    fuzz::Require(!HasKeyTwice(*members), "no key stands in an object twice");
    for (const auto& [key, member] : *members) inner = std::max(inner, DepthOf(member));
    return inner + 1;
  }
  return 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  constexpr kube::JsonLimits kLimits{.max_bytes = 200, .max_depth = 4, .max_values = 20};
  const Result<Json> limited = kube::ParseJson(text, kLimits);
  const Result<Json> value = kube::ParseJson(text);
  if (!value) {
    fuzz::Require(!limited, "a limit refuses more, not less");
    return 0;
  }
  const int depth = DepthOf(*value);
  fuzz::Require(depth <= kube::JsonLimits().max_depth, "the limit on depth holds");
  fuzz::Require(limited.ok() ==
                    (size <= kLimits.max_bytes && depth <= kLimits.max_depth && CountOf(*value) <= kLimits.max_values),
                "limits are exact");
  fuzz::Require(!limited || *limited == *value, "a limit changes nothing");

  const std::string written = kube::ToText(*value);
  const Result<Json> again = kube::ParseJson(written);
  fuzz::Require(
      std::none_of(written.begin(), written.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }),
      "control characters are escaped");
  fuzz::Require(again.ok(), "what was written can be read");
  fuzz::Require(*again == *value, "what is read again is equal");
  fuzz::Require(kube::ToText(*again) == written, "equal values are written the same");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// IsValidUtf8() and RepairUtf8(). Rules: a repaired text is valid, a valid one needs no repair, and JSON
// takes any text and gives it back repaired.
#include "clientlib/model/json.h"
#include "clientlib/model/utf8.h"
#include "tests/fuzz/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  const std::string repaired = kube::RepairUtf8(text);
  fuzz::Require(kube::IsValidUtf8(repaired), "a repaired text is valid");
  fuzz::Require(kube::IsValidUtf8(text) == (repaired == text), "a valid text, and no other, needs no repair");

  const kube::Result<kube::Json> json = kube::ParseJson(kube::ToText(kube::Json(text)));
  fuzz::Require(json.ok() && json->AsString() && *json->AsString() == repaired, "JSON keeps a text but for its repair");
  return 0;
}

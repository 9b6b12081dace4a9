// SPDX-License-Identifier: Apache-2.0
// DecodeObject() of each kind. Rules: RequireRoundTrip(); an error says something.
#include "tests/fuzz/kinds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const kube::Kind* kind : fuzz::kKinds) {
    const kube::Result<std::shared_ptr<kube::Object>> object = kube::DecodeObject(*kind, fuzz::Text(data, size));
    if (object) {
      fuzz::RequireRoundTrip(*kind, **object);
    } else {
      fuzz::Require(!object.error().message().empty(), "an error says what is wrong");
    }
  }
  return 0;
}

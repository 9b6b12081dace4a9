// SPDX-License-Identifier: Apache-2.0
// DecodeObjectList() of each kind. Rules: each item is written and read again as one read alone; a list
// within the limits is read as one without.
#include "tests/fuzz/kinds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  for (const kube::Kind* kind : fuzz::kKinds) {
    const kube::Result<kube::DecodedList> list = kube::DecodeObjectList(*kind, text);
    const kube::Result<kube::DecodedList> limited = kube::DecodeObjectList(*kind, text, {.max_bytes = size});
    fuzz::Require(list.ok() == limited.ok(), "a limit that is kept changes nothing");
    if (!list) continue;
    fuzz::Require(list->items.size() == limited->items.size(), "a limit that is kept takes nothing");
    for (const std::shared_ptr<kube::Object>& item : list->items) fuzz::RequireRoundTrip(*kind, *item);
  }
  return 0;
}

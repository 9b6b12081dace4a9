// SPDX-License-Identifier: Apache-2.0
// DecodeObjectList() of each kind. Rules: each item is written and read again as one read alone; a list
// within the limits is read as one without; what can be read as a whole can be read object by object.
#include "clientlib/model/object_list.h"
#include "tests/fuzz/kinds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::Text(data, size);
  for (const kube::Kind* kind : fuzz::kKinds) {
    const kube::Result<kube::DecodedList> list = kube::DecodeObjectList(*kind, text);
    const kube::Result<kube::DecodedList> limited = kube::DecodeObjectList(*kind, text, {.max_bytes = size});
    fuzz::Require(list.ok() == limited.ok(), "a limit that is kept changes nothing");
    if (!list) {
      (void)kube::DecodeObjectsOneByOne(*kind, text);
      continue;
    }
    fuzz::Require(list->items.size() == limited->items.size(), "a limit that is kept takes nothing");
    const kube::Result<kube::ObjectsOneByOne> each = kube::DecodeObjectsOneByOne(*kind, text);
    fuzz::Require(each && each->unreadable.empty() && each->list.items.size() == list->items.size(),
                  "a list that can be read as a whole can be read object by object");
    for (const std::shared_ptr<kube::Object>& item : list->items) fuzz::RequireRoundTrip(*kind, *item);
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/runtime/predicate.h"

namespace kube {

bool IsSpecChange(const Change& change) {
  if (!change.before || !change.after) return true;
  const ObjectMeta& before = change.before->metadata;
  const ObjectMeta& after = change.after->metadata;
  // The API server counts the start of a deletion as a new generation, but not for each kind.
  return before.uid != after.uid || before.generation != after.generation || after.generation == 0 ||
         before.is_being_deleted() != after.is_being_deleted();
}

}  // namespace kube

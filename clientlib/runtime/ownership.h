// SPDX-License-Identifier: Apache-2.0
// Owner references: which owner to reconcile when a child changes, and how to set the reference. Pure functions.
#pragma once

#include <optional>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/cache/store.h"
#include "clientlib/model/json.h"
#include "clientlib/model/kind.h"

namespace kube {

// The object of kind `owner` that controls `child`; nullopt: none does. Group and kind must match, the
// version need not: it is only the one that the child was made with (rule Q8). References without
// controller=true do not count.
std::optional<ObjectKey> ControllerKey(const Kind& owner, const ObjectMeta& child);

// The controllers of a child before and after a change, each once: an owner that has lost the child needs a pass, too.
std::vector<ObjectKey> ControllerKeys(const Kind& owner, const Change& change);

// Makes `owner`, an object of `kind`, the controller of `child`, an object to create or apply. Replaces a reference to
// the same owner. Errors: kInvalidArgument if `owner` has no UID yet, or may not own `child` (another namespace, or a
// cluster-scoped child of a namespaced owner: the garbage collector would delete it); kAlreadyExists if another object
// controls it (rule F3).
Status SetControllerReference(const Kind& kind, const ObjectMeta& owner, Json& child);

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
// Tells changes that are only for the tools of the original Alnair from others.
#pragma once

#include "clientlib/cache/store.h"
#include "clientlib/model/kind.h"

namespace grus {

// Whether nothing changed but annotations of crds/types/alnair_names.h, which no plan reads. Pure.
bool IsOnlyForAlnair(const kube::Kind& kind, const kube::Change& change);

}  // namespace grus

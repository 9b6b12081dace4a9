// SPDX-License-Identifier: Apache-2.0
// Events are one storage under two names, core v1 and events.k8s.io/v1, with other names of fields. Here each is kept
// in both tables, so that the two have versions of their own: the only difference that a client can see.
#pragma once

#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

void MirrorEvent(Storage& storage, const ResourceInfo& info, const Json& event);
void EraseMirroredEvent(Storage& storage, const ResourceInfo& info, const ObjectKey& key);

}  // namespace kube::testing

// SPDX-License-Identifier: Apache-2.0
// The real server stores events once and serves them under two names, core v1 and events.k8s.io/v1, with different
// field names. Here each event is in both tables, so that the two have versions of their own: the only difference that
// a client can see.
#pragma once

#include "clientlib/testing/api_server/storage.h"

namespace kube::testing {

void MirrorEvent(Storage& storage, const ResourceInfo& info, const Json& event);
void EraseMirroredEvent(Storage& storage, const ResourceInfo& info, const ObjectKey& key);

}  // namespace kube::testing

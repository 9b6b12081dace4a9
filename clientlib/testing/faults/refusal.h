// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "clientlib/http/transport.h"
#include "clientlib/testing/faults/fault.h"

namespace kube::testing {

// What a client gets instead of the server's answer: an error, or something that is no API answer. nullopt: the fault
// has no such answer.
std::optional<HttpResponse> Refusal(const Fault& fault);

}  // namespace kube::testing

// SPDX-License-Identifier: Apache-2.0
// How long a gang, or a member of it, has had for finding its nodes. Pure functions.
#pragma once

#include <chrono>
#include <optional>

#include "controllers/gang/gang_view.h"

namespace grus {

// When the time of a gang below its minimum began to run; nullopt: it does not run. What a clock far ahead of ours has
// stamped, another leader's or our own before it was set back, counts from when the status first said so.
std::optional<kube::Time> StartOf(const GangView& view, const Tally& tally);
// Until the next try.
std::chrono::seconds BackoffAfter(int attempts);

}  // namespace grus

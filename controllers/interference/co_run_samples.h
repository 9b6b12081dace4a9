// SPDX-License-Identifier: Apache-2.0
// Which co-runs a fit uses: repeated ones as one, and of very many so many as a fit can take. Pure; what comes out does
// not depend on the order of what went in.
#pragma once

#include <vector>

#include "controllers/interference/shared_job.h"

namespace grus {

// A fit takes the cube of this. Of more samples, so many are kept.
inline constexpr std::size_t kMaxCoRunSamples = 2000;

// Samples of the same named pair on the same GPU type become one, with their mean speed. Sorted.
std::vector<CoRunSample> MergeSamples(std::vector<CoRunSample> samples);

// At most kMaxCoRunSamples of them, in their order: as many of each GPU type, or all of a type that has fewer; which of
// a type, a hash tells.
std::vector<CoRunSample> DrawEvenly(std::vector<CoRunSample> samples);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// Whether the program captures anything into graphs now, so that launches need not ask the driver while it does not.
#pragma once

namespace grus::cuda {

// False: no stream is captured. Always true with a driver newer than the table of its functions: it may have other ways
// to begin. Thread-safe.
bool MayBeCapturing();

}  // namespace grus::cuda

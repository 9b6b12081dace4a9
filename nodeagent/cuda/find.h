// SPDX-License-Identifier: Apache-2.0
// dlsym() as this library replaces it, and the real one.
#pragma once

namespace grus::cuda {

// glibc's own dlsym().
void* RealDlsym(void* handle, const char* name);

}  // namespace grus::cuda

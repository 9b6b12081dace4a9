// SPDX-License-Identifier: Apache-2.0
// Reads files that the command line names.
#pragma once

#include <string>

#include "clientlib/base/result.h"
#include "controllers/kubectl/trial_fit.h"

namespace grus {

// The whole file, and its path as its name. Error (kNotFound): it cannot be read.
kube::Result<CsvText> ReadFile(const std::string& path);

}  // namespace grus

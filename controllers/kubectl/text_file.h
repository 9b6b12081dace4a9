// SPDX-License-Identifier: Apache-2.0
// Reads files that the command line names.
#pragma once

#include <cstdint>
#include <string>

#include "clientlib/base/result.h"
#include "controllers/kubectl/trial_fit.h"

namespace grus {

// The whole file, or its first `max_bytes`, and its path as its name. Error (kNotFound): it cannot be read.
kube::Result<CsvText> ReadFile(const std::string& path, std::size_t max_bytes = SIZE_MAX);

// As much of it as tells ParseCsv() that it is too large.
kube::Result<CsvText> ReadCsvFile(const std::string& path);

}  // namespace grus

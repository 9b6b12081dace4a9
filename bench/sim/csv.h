// SPDX-License-Identifier: Apache-2.0
// CSV files of traces.
#pragma once

#include <string>

#include "clientlib/base/result.h"
#include "controllers/kubectl/csv.h"

namespace grus {

// Error kNotFound: the file cannot be read; kDecode or kTooLarge: as ParseCsv() says, or there is no row.
kube::Result<CsvTable> ReadCsvFile(const std::string& path);

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// A model as a file: JSON with a version, the jobs, their co-runs and what was learned from them. What a reader can
// derive is not in it, so a file of 2,000 co-runs is some 100 KB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "clientlib/base/result.h"
#include "controllers/interference/interference_model.h"

namespace grus {

// Counts up when an older reader would misread a newer file.
inline constexpr std::int64_t kModelFileVersion = 1;

// A larger file is not read. Only names of many kilobytes make one.
inline constexpr std::size_t kMaxModelBytes = 8u << 20;

std::string WriteModelFile(const InterferenceModel& model);

// Error kDecode: it is no such file, is of another version, or says what no fit writes. `name` is in the message.
kube::Result<InterferenceModel> ReadModelFile(std::string_view text, const std::string& name);

}  // namespace grus

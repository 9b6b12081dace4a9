// SPDX-License-Identifier: Apache-2.0
// For steps that a test cannot go on without: an error is thrown with its message, and ends the test.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "clientlib/base/result.h"
#include "clientlib/model/json.h"

namespace kit {

inline void Must(const kube::Status& done) {
  if (!done) throw std::runtime_error(kube::Status(done).error().message());
}
template <typename T>
T Must(kube::Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return *std::move(result);
}

// The JSON of a literal in a test.
inline kube::Json FromText(std::string_view text) { return Must(kube::ParseJson(text)); }

}  // namespace kit

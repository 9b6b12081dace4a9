// SPDX-License-Identifier: Apache-2.0
// Reads the answer to a query of Prometheus' HTTP API (also of Thanos, Mimir and VictoriaMetrics) as it comes: of any
// number of series, one sample is in memory.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/base/result.h"

namespace grus {

// One series of the answer, or one moment of it, or the scalar that the answer is.
struct QuerySample {
  std::vector<std::pair<std::string, std::string>> labels = {};  // As they come; a scalar has none.
  double time = 0;                                               // Unix, in seconds.
  double value = 0;                                              // NaN: it has none, or it is not finite.
};

// Of an instant query: one sample a series. Of a range query: many.
enum class AnswerKind { kNow, kRange };

struct AnswerLimits {
  std::size_t bytes = 16u << 20, series = 200'000;
};

// The next bytes of the body; empty at its end.
using ByteSource = std::function<kube::Result<std::string>()>;
using OnSample = std::function<void(const QuerySample&)>;

// Calls `on_sample` for each sample, also of an answer that turns out to be wrong later. Errors: kDecode: it is not
// from Prometheus; kInvalidArgument: Prometheus refuses the query, or the query returns something else;
// kTooLarge; those of `source`.
kube::Status ReadAnswer(const ByteSource& source, AnswerLimits limits, const OnSample& on_sample,
                        AnswerKind kind = AnswerKind::kNow);

}  // namespace grus

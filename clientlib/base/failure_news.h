// SPDX-License-Identifier: Apache-2.0
// Which failures of something that is tried again and again are to be logged: each kind of failure when it is new, then
// once a minute. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"

namespace kube {

class FailureNews {
 public:
  static constexpr Duration kAgain = std::chrono::minutes(1);

  // Kinds are told apart by code, HTTP status and reason: messages have times and numbers of tries in them.
  bool IsNews(const Error& error, TimePoint now);
  void Reset() { told_.clear(); }  // It works again: each failure is new.

 private:
  using Kind = std::tuple<ErrorCode, int, std::string, bool>;
  std::map<Kind, TimePoint> told_;
};

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
// What the API server has asked to send later (Retry-After): until then nobody sends it, whichever part of the program
// asked first (rule H2). Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "clientlib/base/clock.h"
#include "clientlib/base/error.h"

namespace kube {

class PostponedRequests {
 public:
  static constexpr Duration kLongest = std::chrono::minutes(10);

  explicit PostponedRequests(const Clock& clock) : clock_(clock) {}

  // The error of the request that was refused, with the time that is left; none: it may be sent. `request`: method and
  // path, without the query.
  std::optional<Error> WhyNot(const std::string& request);
  // `error` asks to wait, for kLongest at most; or says nothing of it.
  void Note(const std::string& request, const Error& error);

 private:
  struct Postponed {
    TimePoint until;
    Error why;
  };
  const Clock& clock_;
  std::mutex mutex_;  // Guards the following.
  std::unordered_map<std::string, Postponed> requests_;
};

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/postponed_requests.h"

#include <algorithm>

namespace kube {

std::optional<Error> PostponedRequests::WhyNot(const std::string& request) {
  std::lock_guard lock(mutex_);
  if (requests_.empty()) return std::nullopt;
  const TimePoint now = clock_.Now();
  std::erase_if(requests_, [now](const auto& entry) { return entry.second.until <= now; });
  const auto found = requests_.find(request);
  if (found == requests_.end()) return std::nullopt;
  return Error(found->second.why).with_retry_after(found->second.until - now);
}

void PostponedRequests::Note(const std::string& request, const Error& error) {
  if (!error.retry_after()) return;
  std::lock_guard lock(mutex_);
  const TimePoint until = clock_.Now() + std::min(*error.retry_after(), kLongest);
  const auto [entry, is_new] = requests_.try_emplace(request, Postponed{until, error});
  if (!is_new && entry->second.until < until) entry->second = Postponed{until, error};
}

}  // namespace kube

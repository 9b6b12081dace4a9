// SPDX-License-Identifier: Apache-2.0
#include "clientlib/base/failure_news.h"

namespace kube {

bool FailureNews::IsNews(const Error& error, TimePoint now) {
  const Kind kind{error.code(), error.http_status(), std::string(error.reason()), error.is_terminal()};
  const auto [told, is_first] = told_.try_emplace(kind, now);
  if (!is_first && now - told->second < kAgain) return false;
  told->second = now;
  return true;
}

}  // namespace kube

// SPDX-License-Identifier: Apache-2.0
// Reads one object that may not be there.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "clientlib/client/client.h"

namespace grus {

// The object as the API server has it; null: it is not there.
template <typename T>
kube::Result<std::shared_ptr<T>> LookFor(kube::Client& client, const kube::ObjectKey& key, std::stop_token stop = {}) {
  kube::Result<std::shared_ptr<T>> live = client.Get<T>(key, std::move(stop));
  if (live) return live;
  if (live.error().code() == kube::ErrorCode::kNotFound) return std::shared_ptr<T>();
  return std::move(live).error().with("look for " + std::string(kube::KindOf<T>().kind) + " " + key.ToString());
}

}  // namespace grus

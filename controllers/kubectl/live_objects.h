// SPDX-License-Identifier: Apache-2.0
// Reads objects of grus from the API server. Errors say what a user can do.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "clientlib/client/client.h"

namespace grus {

// `error`, of getting the object, or of listing the kind if `key` has no name.
kube::Error Explained(const kube::Error& error, const kube::Kind& kind, const kube::ObjectKey& key);

template <typename T>
kube::Result<std::shared_ptr<T>> GetLive(kube::Client& client, const kube::ObjectKey& key) {
  auto object = client.Get<T>(key);
  if (!object) return Explained(object.error(), kube::KindOf<T>(), key);
  return object;
}

// `ns` empty: of all namespaces.
template <typename T>
kube::Result<std::vector<std::shared_ptr<const T>>> ListLive(kube::Client& client, const std::string& ns) {
  const auto list = client.List(kube::KindOf<T>(), ns);
  if (!list) return Explained(list.error(), kube::KindOf<T>(), {ns, ""});
  std::vector<std::shared_ptr<const T>> objects;
  for (const auto& item : list->items) objects.push_back(std::static_pointer_cast<const T>(item));
  return objects;
}

}  // namespace grus

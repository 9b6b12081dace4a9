// SPDX-License-Identifier: Apache-2.0
#include "clientlib/client/resource_path.h"

#include "clientlib/http/url.h"

namespace kube {

std::string CollectionPath(const Kind& kind, std::string_view ns) {
  std::string path = kind.group.empty() ? "/api/" : "/apis/";
  if (!kind.group.empty()) path.append(EscapePathSegment(kind.group)).append("/");
  path.append(EscapePathSegment(kind.version));
  if (kind.is_namespaced && !ns.empty()) path.append("/namespaces/").append(EscapePathSegment(ns));
  return path.append("/").append(EscapePathSegment(kind.plural));
}

std::string ObjectPath(const Kind& kind, const ObjectKey& key, std::string_view subresource) {
  std::string path = CollectionPath(kind, key.ns).append("/").append(EscapePathSegment(key.name));
  if (!subresource.empty()) path.append("/").append(subresource);
  return path;
}

}  // namespace kube

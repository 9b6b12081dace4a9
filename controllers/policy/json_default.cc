// SPDX-License-Identifier: Apache-2.0
#include "controllers/policy/json_default.h"

namespace grus {

void SetDefault(kube::Json& object, std::span<const std::string> path, const kube::Json& value) {
  if (!object.is_null() && !object.is_object()) return;
  kube::Json& member = object[path.front()];
  if (path.size() > 1) SetDefault(member, path.subspan(1), value);
  else if (member.is_null()) member = value;
}

}  // namespace grus

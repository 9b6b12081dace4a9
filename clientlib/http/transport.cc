// SPDX-License-Identifier: Apache-2.0
#include "clientlib/http/transport.h"

namespace kube {

const std::string& HttpResponse::Header(std::string_view name) const {
  static const std::string kNone;
  for (const auto& [have, value] : headers) {
    if (have == name) return value;
  }
  return kNone;
}

}  // namespace kube

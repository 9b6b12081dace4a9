// SPDX-License-Identifier: Apache-2.0
// The hosts that Horovod may use, as a ConfigMap and the launcher's pod carry them. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/model/core_v1.h"

namespace grus {

// On the ConfigMap: when the list was published; on a launcher's pod: the list itself.
inline constexpr char kPublishedAnnotation[] = "ai.centauruscloud.io/published";
inline constexpr char kHostsAnnotation[] = "ai.centauruscloud.io/hosts";

// A worker as Horovod knows it: by address. The pod that replaces a lost one is then a host that never failed, and no
// name has to resolve first.
struct Host {
  std::string pod, address;
  friend bool operator==(const Host&, const Host&) = default;
};

// The host list as it was last published.
struct HostList {
  std::vector<Host> hosts;  // In rank order as far as we know it.
  int slots = 1;
  std::int64_t revision = 0;
  kube::Time published{};
  bool Has(const std::string& pod) const;
  friend bool operator==(const HostList&, const HostList&) = default;
};

// The text of the host list: "revision N", then one "ADDRESS:SLOTS POD" a line. Horovod gets the first word of each.
std::string HostListText(const HostList& list);
std::optional<HostList> ReadHostList(const kube::ConfigMap& config_map);
// The revision in the first line of such a text, 0 if it has none.
std::int64_t RevisionOfHostList(std::string_view text);

}  // namespace grus

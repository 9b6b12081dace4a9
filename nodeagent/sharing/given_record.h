// SPDX-License-Identifier: Apache-2.0
// Which ids of parts were given with what holds a container to its part, in one way, when they were given last. In a
// file for each GPU: FOLDER/UUID/given.
//
// The kubelet keeps what a container got, also over restarts of the container, of itself and of the agent; so whoever
// holds such ids has what was given with them. An id that is given anew without it is taken out before the kubelet
// hears of it. A record that is lost says that nothing was given so.
// Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "clientlib/base/result.h"
#include "nodeagent/sharing/device_ids.h"
#include "nodeagent/sharing/enforcement.h"
#include "nodeagent/sharing/held_parts.h"
#include "nodeagent/sharing/part_resources.h"

namespace grus {

class GivenRecord {
 public:
  // Reads what is there. `way`: which way this is, for messages.
  GivenRecord(std::string folder, Enforcement way);

  // Before the kubelet is answered. Error: it cannot be written for a GPU, and is as before of that.
  kube::Status Set(PartResource resource, const std::vector<PartId>& ids, bool is_given_so);
  bool HasAll(PartResource resource, const std::vector<PartId>& ids) const;  // False without ids.
  bool HasAll(const HeldParts& part) const;  // Of all its resources, and it has nothing by a claim.
  std::vector<std::string> gpus() const;     // UUIDs of folders that are there.

 private:
  using Ids = std::map<PartResource, std::set<std::int64_t>>;
  kube::Status Write(const std::string& gpu, const Ids& ids) const;

  const std::string folder_;
  const Enforcement way_;
  mutable std::mutex mutex_;          // Guards given_, and the files.
  std::map<std::string, Ids> given_;  // By UUID.
};

}  // namespace grus

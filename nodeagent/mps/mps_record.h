// SPDX-License-Identifier: Apache-2.0
// Which ids of parts were given under MPS when they were given last, in a file for each GPU: FOLDER/UUID/given.
//
// The kubelet keeps what a container got, also over restarts of the container, of itself and of the agent; so whoever
// holds such ids has what was given with them. An id that is given anew without MPS is taken out before the kubelet
// hears of it. A record that is lost, as after a reboot of the node, says that nothing was given under MPS.
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
#include "nodeagent/sharing/part_resources.h"

namespace grus {

class MpsRecord {
 public:
  // Reads what is there.
  explicit MpsRecord(std::string folder);

  // Before the kubelet is answered. Error: it cannot be written for a GPU, and is as before of that.
  kube::Status Set(PartResource resource, const std::vector<PartId>& ids, bool is_under_mps);
  bool HasAll(PartResource resource, const std::vector<PartId>& ids) const;  // False without ids.
  std::vector<std::string> gpus() const;                                     // UUIDs of folders that are there.

 private:
  using Ids = std::map<PartResource, std::set<std::int64_t>>;
  kube::Status Write(const std::string& gpu, const Ids& ids) const;

  const std::string folder_;
  mutable std::mutex mutex_;          // Guards given_, and the files.
  std::map<std::string, Ids> given_;  // By UUID.
};

}  // namespace grus

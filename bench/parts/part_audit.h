// SPDX-License-Identifier: Apache-2.0
// Whether pods hold more of a shared GPU than there is, at any revision of any of them.
//
// Goes by what the cluster's objects say: of a node its inventory, of a pod its node, its thousandths, and the GPU that
// is planned for it or that it has. Sees what the ledger of grus-manager should, and shares nothing with it but how an
// object is read. Not thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "clientlib/model/core_v1.h"

namespace bench {

class PartAudit {
 public:
  // REQUIRES: before the pods that are bound to it.
  void PutNode(const kube::Node& node);
  // The next revision of a pod. One that has ended holds nothing.
  void PutPod(const kube::Pod& pod);
  void RemovePod(const kube::Pod& pod);

  int revisions() const { return revisions_; }
  std::int64_t most_milli() const { return most_milli_; }            // That pods ever held of one GPU.
  int used_gpus() const { return static_cast<int>(milli_.size()); }  // Of which a pod ever held something.
  // What is wrong, each with its pod: a GPU with more than 1000 thousandths given; a bound pod without a GPU, or with
  // one that is not of its node.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  struct Held {
    std::string gpu;
    std::int64_t milli = 0;
  };
  void Release(const std::string& uid);

  std::map<std::string, std::string, std::less<>> node_of_;  // By GPU.
  std::map<std::string, Held> held_;                         // By pod UID.
  std::map<std::string, std::int64_t> milli_;                // That is held, by GPU.
  std::vector<std::string> faults_;
  std::int64_t most_milli_ = 0;
  int revisions_ = 0;
};

}  // namespace bench

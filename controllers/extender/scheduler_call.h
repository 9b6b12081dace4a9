// SPDX-License-Identifier: Apache-2.0
// What a kube-scheduler sends to an extender, and what it reads back: k8s.io/kube-scheduler/extender/v1. Pure.
//
// The scheduler writes names of members with capitals, as Go has them; others write them in lower case, and both are
// read. Nodes come as names (nodeCacheCapable: true) or whole; of whole ones nothing is read but the name, and the text
// goes back as it came. Views point into the body.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "clientlib/base/result.h"
#include "clientlib/model/core_v1.h"

namespace grus {

// Of the verbs filter and prioritize.
struct NodesCall {
  std::shared_ptr<const kube::Pod> pod = {};
  std::string_view pod_text = {};              // All that was sent of it, in JSON.
  std::vector<std::string_view> nodes = {};    // Their names.
  std::vector<std::string_view> objects = {};  // Of whole nodes: the text of each; else empty.
};

struct PreemptCall {
  std::shared_ptr<const kube::Pod> pod = {};
  struct Victims {
    std::vector<std::string> uids = {};  // The most important one first, as the scheduler sorts them.
    std::int64_t violations = 0;         // Of PodDisruptionBudgets.
  };
  std::map<std::string, Victims> victims = {};  // By node.
};

struct BindCall {
  kube::ObjectKey pod = {};
  std::string uid = {}, node = {};
};

// Errors (kInvalidArgument) name the member and what was expected.
kube::Result<NodesCall> ReadNodesCall(std::string_view body);
kube::Result<PreemptCall> ReadPreemptCall(std::string_view body);
kube::Result<BindCall> ReadBindCall(std::string_view body);

// `why_not`: of each node; empty: the pod can run there.
std::string FilterAnswer(const NodesCall& call, const std::vector<std::string>& why_not);
std::string PrioritizeAnswer(const NodesCall& call, const std::vector<int>& scores);
std::string PreemptAnswer(const std::map<std::string, PreemptCall::Victims>& victims);  // Those that would help.
// To filter, preempt and bind: the scheduler tries the pod again later. Empty: no error, so that to bind it is done.
std::string ErrorAnswer(std::string_view error);

}  // namespace grus

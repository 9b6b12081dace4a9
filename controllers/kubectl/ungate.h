// SPDX-License-Identifier: Apache-2.0
// The way out: takes the gates of grus from pods that wait, where grus is not there to do it.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "clientlib/client/client.h"

namespace grus {

struct GatedPod {
  kube::ObjectKey key;
  std::string uid;
  std::string group;               // The PodGroup its label names; empty: none.
  std::string owner;               // "StatefulSet bert-workers": who makes such pods; empty: nobody.
  std::vector<std::string> gates;  // Those of grus.
  bool has_foreign_gate = false;   // It will still wait.
};

// Those in `ns`, or in all namespaces if that is empty, by namespace and name. Pods that are being deleted are left
// out.
kube::Result<std::vector<GatedPod>> FindGatedPods(kube::Client& client, const std::string& ns);

// From then on the pod is the scheduler's. It does not say that grus lifted the gate: if grus comes back, it leaves the
// pod as it is. A pod that is gone is no error.
kube::Status LiftGates(kube::Client& client, const GatedPod& pod);

// Says which pods wait and, if `must_lift`, lifts their gates; else how to. One that fails does not stop the others.
// Returns the exit status: 0, or 1 if something failed.
int UngatePods(kube::Client& client, const std::string& ns, bool must_lift, std::ostream& out, std::ostream& error);

}  // namespace grus

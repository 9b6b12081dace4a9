// SPDX-License-Identifier: Apache-2.0
// kubectl grus ungate: lifts the gates of pods that wait for a grus that is not running.
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
  std::string owner;               // "StatefulSet bert-workers": creates such pods; empty: none.
  std::vector<std::string> gates;  // Those of grus.
  bool has_foreign_gate = false;   // It will still wait without the gates of grus.
};

// The gated pods in `ns`, or in all namespaces if `ns` is empty, ordered by namespace and name, without pods that are
// being deleted.
kube::Result<std::vector<GatedPod>> FindGatedPods(kube::Client& client, const std::string& ns);

// Writes no annotation that grus lifted the gate: if grus comes back, it must not delete the pod in a roll-back. A pod
// that is gone is no error.
kube::Status LiftGates(kube::Client& client, const GatedPod& pod);

// Lists the pods that wait and, if `must_lift`, lifts their gates; a failure does not stop the others. Returns the exit
// status: 0, or 1 if something failed.
int UngatePods(kube::Client& client, const std::string& ns, bool must_lift, std::ostream& out, std::ostream& error);

}  // namespace grus

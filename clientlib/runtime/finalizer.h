// SPDX-License-Identifier: Apache-2.0
// A finalizer: cleanup of what lives outside the cluster, or where no owner reference reaches, before an
// object goes.
//
//   return kube::ReconcileWithFinalizer(client, KindOf<Job>(), job->metadata, "example.com/bucket",
//                                       {.apply = [&] { return MakeBucket(*job); },
//                                        .cleanup = [&] { return DeleteBucket(*job); }}, stop);
//
// The finalizer stands in the object before the first side effect (rule F1), so that no end of this process
// leaves something behind. Two writers of finalizers cannot erase each other's, and a write never lands on
// another object of the same name: the patches test what they are based on. Thread-safe.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "clientlib/client/client.h"
#include "clientlib/runtime/controller.h"

namespace kube {

struct FinalizerSteps {
  // For an object that shall be there and has the finalizer.
  std::function<Result<Action>()> apply;
  // For an object that is being deleted. It may run again after it succeeded, and for an object for which
  // `apply` never did anything (rule F2): what is not there is cleaned up. An error keeps the finalizer.
  std::function<Status()> cleanup;
};

// One pass over `object`, as it stands in the cache. An object without the finalizer gets it and nothing
// else: the event of that write brings the next pass. Success if the object is gone. Errors of ours:
// kConflict if somebody else wrote finalizers meanwhile, for the work queue to try again. REQUIRES:
// `finalizer` is "domain/name".
Result<Action> ReconcileWithFinalizer(Client& client, const Kind& kind, const ObjectMeta& object,
                                      const std::string& finalizer, const FinalizerSteps& steps,
                                      std::stop_token stop = {});

}  // namespace kube

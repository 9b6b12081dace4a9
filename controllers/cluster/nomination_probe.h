// SPDX-License-Identifier: Apache-2.0
// Whether this cluster holds a node for a gated pod that somebody other than its scheduler has nominated. No document
// promises it, so it is tried, whenever a scheduler begins to lead.
//
// Two pods in our own namespace: the first is gated for ever and nominated for a node; the second may run on that node
// alone, and not beside the first. A scheduler that honours the nomination finds no place for the second. Both ask for
// nothing, run nothing, and are deleted at once; what a crash has left, the next try deletes. That nominations are not
// honoured is believed after three tries in a row, and tried again every ten minutes.
// A reconciler of one key, so that it runs while this process leads.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "clientlib/cache/informer.h"
#include "clientlib/client/client.h"
#include "clientlib/model/pod.h"
#include "clientlib/runtime/controller.h"
#include "controllers/cluster/lease_watch.h"

namespace grus {

enum class Honoured { kYes, kNo, kUnknown };
struct ProbeVerdict {
  Honoured honoured = Honoured::kUnknown;
  std::string why;
};

// The two pods, as they are created. Allowed by Pod Security "restricted".
kube::Json HeldProbePod(const std::string& ns);
kube::Json GuestProbePod(const std::string& ns, const std::string& node);
// What the scheduler made of the guest; nullopt: nothing yet.
std::optional<ProbeVerdict> JudgeProbe(const kube::Pod& guest);

class NominationProbe final : public kube::Reconciler {
 public:
  // `tell` gets each verdict. All must outlive the probe.
  NominationProbe(kube::Client& client, std::string ns, kube::Informer& nodes,
                  std::function<void(const ProbeVerdict&)> tell, const kube::Clock& clock);

  // Asks for a first probe, and for another one with each change of `scheduler`. Call once, before the informers start.
  void FeedQueue(kube::WorkQueue& queue, LeaseWatch& scheduler);

  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  kube::Result<ProbeVerdict> Try(const std::string& node, std::stop_token stop);
  kube::Status CleanUp(std::stop_token stop);
  std::string ChooseNode() const;  // Ready and open to pods; empty: there is none.

  kube::Client& client_;
  const std::string ns_;
  kube::Informer& nodes_;
  const std::function<void(const ProbeVerdict&)> tell_;
  const kube::Clock& clock_;
};

}  // namespace grus

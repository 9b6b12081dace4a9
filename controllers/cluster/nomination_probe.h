// SPDX-License-Identifier: Apache-2.0
// Whether the scheduler of this cluster keeps the node for a gated pod that somebody else has nominated. No document
// promises that, so the probe tries it whenever a scheduler starts to lead.
//
// Two pods in our own namespace: the first is gated for ever and nominated for a node; the second may run only on that
// node, and not beside the first. A scheduler that honours the nomination finds no place for the second. Both ask for
// nothing, run nothing, and are deleted at once; the next try deletes what a crash has left. It takes three tries in a
// row to believe that nominations are not honoured. After any verdict but "yes", the probe tries again in ten minutes.
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
kube::Json NominatedProbePod(const std::string& ns);
kube::Json GuestProbePod(const std::string& ns, const std::string& node);
// What the scheduler did with the guest; nullopt: nothing yet.
std::optional<ProbeVerdict> JudgeProbe(const kube::Pod& guest);

class NominationProbe final : public kube::Reconciler {
 public:
  // `tell` gets each verdict. All must outlive the probe.
  NominationProbe(kube::Client& client, std::string ns, kube::Informer& nodes,
                  std::function<void(const ProbeVerdict&)> tell, const kube::Clock& clock);

  // Asks for a probe now and with each new holder of `scheduler`. Call once, before the informers start.
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

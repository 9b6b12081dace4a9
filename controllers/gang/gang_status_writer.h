// SPDX-License-Identifier: Apache-2.0
// Writes the status of PodGroups, and remembers what the cluster does not keep of it: the fields that the CRD of the
// coscheduling plugin lacks, or the whole status while that plugin's own controllers lead and write it. Changes that
// decide nothing wait for others, so that one write serves several.
//
// There is one writer for each of the two kinds of PodGroup. Thread-safe: many groups at once. After a restart, the
// next process goes on from the status in the cluster.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/cache/write_tracker.h"
#include "clientlib/client/client.h"
#include "clientlib/runtime/event_recorder.h"
#include "controllers/cluster/lease_watch.h"
#include "controllers/frame/status_writer.h"
#include "controllers/gang/gang_view.h"

namespace grus {

class GangStatusWriter {
 public:
  using Group = std::shared_ptr<const api::PodGroup>;

  // `plugins`: the lease of scheduler-plugins' controllers; null: there are none. Notes its writes in `writes`.
  GangStatusWriter(kube::Client& client, const kube::Kind& kind, kube::Informer& groups, const LeaseWatch* plugins,
                   kube::WriteTracker& writes, kube::EventRecorder& events, const kube::Clock& clock,
                   const kube::Log& log);

  // The group with the last status that we gave it, also where the cluster does not keep it.
  Group WithLastStatus(const Group& group);
  kube::Result<Deferred> Write(const GangView& view, api::PodGroupStatus status, std::stop_token stop);
  // How long another controller still owns the status if it does not renew its lease; nullopt: none owns it.
  std::optional<kube::Duration> TimeUntilOthersLoseStatus() const;
  void Forget(const kube::ObjectKey& key);

 private:
  struct Memory {
    std::optional<api::PodGroupStatus> last_status;
    bool is_left_to_others = false;  // We have written nothing since.
  };
  void Remember(const GangView& view, std::optional<api::PodGroupStatus> last_status);
  void LeaveToOthers(const GangView& view, const api::PodGroupStatus& status);

  StatusWriter statuses_;
  const kube::Kind& kind_;
  kube::Informer& groups_;
  const LeaseWatch* const plugins_;
  kube::EventRecorder& events_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  std::atomic<bool> was_others_{false};  // For the log.
  kube::ObjectMemory<Memory> memory_;
};

}  // namespace grus

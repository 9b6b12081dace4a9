// SPDX-License-Identifier: Apache-2.0
// Who may write, where several processes run.
#pragma once

#include "clientlib/client/client.h"
#include "clientlib/model/events_v1.h"
#include "clientlib/runtime/leader_elector.h"

namespace grus {

// Only the leader writes (rule E4), even if this process was suspended and does not know yet that its lease has run
// out. Events are exempt: they may still tell what it did.
class LeaderGate final : public kube::WriteGate {
 public:
  // `elector` may be null: then every write is allowed.
  LeaderGate(kube::Client& client, const kube::LeaderElector* elector) : client_(client), elector_(elector) {
    if (elector_ != nullptr) client_.SetWriteGate(this);
  }
  ~LeaderGate() override { client_.SetWriteGate(nullptr); }

  kube::Status MayWrite(const kube::Kind& kind) const override {
    if (&kind == &kube::KindOf<kube::Event>() || elector_->IsLeader()) return {};
    return kube::Error(kube::ErrorCode::kCancelled, "this process does not lead any more");
  }

 private:
  kube::Client& client_;
  const kube::LeaderElector* elector_;
};

}  // namespace grus

// SPDX-License-Identifier: Apache-2.0
// The model that predicts how fast pods are beside each other, learned anew when WorkloadProfiles have other co-runs.
//
// Its samples are those of a model file, if there is one, and spec.coRuns of all profiles; of a pair that both know, a
// profile's count as often as they were measured. At most one fit each kEvery: a fit of 2,000 co-runs takes seconds.
// Thread-safe. A pass blocks for a fit.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <vector>

#include "clientlib/base/clock.h"
#include "clientlib/base/log.h"
#include "clientlib/cache/informer.h"
#include "clientlib/runtime/controller.h"
#include "controllers/frame/key_feed.h"
#include "controllers/interference/interference_model.h"

namespace grus {

class InterferenceWatch final : public kube::Reconciler {
 public:
  static constexpr kube::Duration kEvery = std::chrono::minutes(1);

  using Use = std::function<void(std::shared_ptr<const InterferenceModel>)>;
  // `told`: the samples of a model file. `use` is called with each new model, from the thread of the pass. All must
  // outlive it.
  InterferenceWatch(kube::Informer& profiles, std::vector<CoRunSample> told, Use use, const kube::Clock& clock,
                    const kube::Log& log);

  // Call once, before the informer starts.
  void FeedQueue(kube::WorkQueue& queue);
  kube::Result<kube::Action> Reconcile(const kube::ObjectKey& key, std::stop_token stop) override;

 private:
  kube::Informer& profiles_;
  const std::vector<CoRunSample> told_;
  const Use use_;
  const kube::Clock& clock_;
  const kube::Log& log_;
  KeyFeed feed_{std::chrono::seconds(2)};  // Profiles often come together.
  // Of the one pass.
  kube::TimePoint next_fit_{};
  std::vector<CoRunSample> fitted_;
};

}  // namespace grus

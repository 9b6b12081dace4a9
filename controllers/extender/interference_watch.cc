// SPDX-License-Identifier: Apache-2.0
#include "controllers/extender/interference_watch.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "controllers/extender/profiled_job.h"
#include "controllers/interference/co_run_samples.h"
#include "crds/types/workload_profile.h"

namespace grus {
namespace {

using api::WorkloadProfile;
using kube::Action;

// What a model is made of. Runs and points change often, and the features that follow from them seldom.
bool SaysSame(const WorkloadProfile* a, const WorkloadProfile* b) {
  static const WorkloadProfile kNone;
  a = a != nullptr ? a : &kNone;
  b = b != nullptr ? b : &kNone;
  return a->spec.co_runs == b->spec.co_runs && a->spec.features == b->spec.features;
}

bool AreSame(const CoRunSample& a, const CoRunSample& b) {
  return a.job == b.job && a.partner == b.partner && a.gpu_type == b.gpu_type && a.speed == b.speed &&
         a.count == b.count;
}

}  // namespace

InterferenceWatch::InterferenceWatch(kube::Informer& profiles, std::vector<CoRunSample> told, Use use,
                                     const kube::Clock& clock, const kube::Log& log)
    : profiles_(profiles), told_(std::move(told)), use_(std::move(use)), clock_(clock), log_(log) {}

void InterferenceWatch::FeedQueue(kube::WorkQueue& queue) {
  static const kube::ObjectKey kFit{"", "interference"};
  feed_.Open(queue);
  profiles_.AddHandler([this](const kube::Change& change, bool) {
    const auto* before = static_cast<const WorkloadProfile*>(change.before.get());
    const auto* after = static_cast<const WorkloadProfile*>(change.after.get());
    if (!SaysSame(before, after)) feed_.Add(kFit, News::kSoon);
  });
  feed_.Add(kFit);
}

kube::Result<Action> InterferenceWatch::Reconcile(const kube::ObjectKey&, std::stop_token) {
  if (clock_.Now() < next_fit_) return Action::After(next_fit_ - clock_.Now());
  std::vector<CoRunSample> samples = told_;
  std::ranges::move(CoRunSamplesOf(profiles_.List<WorkloadProfile>()), std::back_inserter(samples));
  samples = DrawEvenly(MergeSamples(std::move(samples)));
  if (std::ranges::equal(samples, fitted_, AreSame)) return Action::AwaitChange();
  next_fit_ = clock_.Now() + kEvery;
  kube::Result<InterferenceModel> model = InterferenceModel::Fit(samples);
  if (!model) {
    log_.Warn("co-runs cannot be learned from", {{"error", model.error().message()}});
    return Action::AwaitChange();
  }
  fitted_ = std::move(samples);
  use_(std::make_shared<const InterferenceModel>(*std::move(model)));
  log_.Info("learned from co-runs", {{"co_runs", fitted_.size()}});
  return Action::AwaitChange();
}

}  // namespace grus
